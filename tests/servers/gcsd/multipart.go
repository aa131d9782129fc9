// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
)

type upload struct {
	header http.Header
	parts  map[int][]byte
}

type part struct {
	PartNumber int
	ETag       string
}

// multipart keeps the parts in memory until the client completes the upload; obstore sends an overwrite
// of more than 5 MiB this way.
func (s *server) multipart(w http.ResponseWriter, r *http.Request, bucket, name string, body []byte) {
	id := r.URL.Query().Get("uploadId")
	number, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
	s.lock.Lock()
	known, found := s.uploads[id]
	if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
		id, found = rand.Text(), true
		s.uploads[id] = upload{header: r.Header.Clone(), parts: map[int][]byte{}}
	} else if r.Method == http.MethodPut && found {
		known.parts[number] = body
	} else if found {
		delete(s.uploads, id)
	}
	s.lock.Unlock()
	switch {
	case !found:
		fail(w, http.StatusNotFound, "NoSuchUpload")
	case r.URL.Query().Has("uploads"):
		reply(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket   string
			Key      string
			UploadId string
		}{Bucket: bucket, Key: name, UploadId: id})
	case r.Method == http.MethodPut:
		w.Header().Set("ETag", strconv.Quote(strconv.Itoa(number)))
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		var order struct{ Part []part }
		err := xml.Unmarshal(body, &order)
		var whole []byte
		for _, wanted := range order.Part {
			piece, sent := known.parts[wanted.PartNumber]
			if !sent {
				err = io.ErrUnexpectedEOF
			}
			whole = append(whole, piece...)
		}
		if err != nil {
			fail(w, http.StatusBadRequest, "InvalidPart")
		} else if s.write(w, known.header, bucket, name, whole) {
			reply(w, struct {
				XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
				ETag    string
			}{ETag: w.Header().Get("ETag")})
		}
	}
}
