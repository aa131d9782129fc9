// SPDX-License-Identifier: Apache-2.0

// gcsd is a Google Cloud Storage server for tests. The objects live in the fake-gcs-server engine; what
// is added here is the XML dialect that obstore speaks and that the stock server refuses: PUT with
// x-goog-if-generation-match, multipart uploads, and listings in pages.
//
// It has no authentication. What it cannot do it answers with 400, never with a success that did less.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

const (
	pageKeys         = 1000 // the page Cloud Storage sends when the client names no size
	bodyLimitBytes   = 64 << 20
	generationHeader = "X-Goog-Generation"
	matchHeader      = "X-Goog-If-Generation-Match"
)

type server struct {
	engine *fakestorage.Server
	// The engine decides preconditions under a lock of its own. This one is for readers: the engine opens
	// a file only at the first read, so a GET beside a PUT could pair the old generation with new bytes.
	lock    sync.RWMutex
	uploads map[string]upload
}

type upload struct {
	header http.Header
	parts  map[int][]byte
}

type part struct {
	PartNumber int
	ETag       string
}

type prefixEntry struct{ Prefix string }

type objectEntry struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
}

type listPage struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	KeyCount              int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []objectEntry
	CommonPrefixes        []prefixEntry
}

func main() {
	address := flag.String("addr", "127.0.0.1:4443", "host and port to listen on")
	root := flag.String("root", "", "folder for the objects; empty keeps them in memory")
	bucket := flag.String("bucket", "arco-test", "bucket that exists from the start")
	flag.Parse()
	engine, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, StorageRoot: *root})
	if err != nil {
		log.Fatal(err)
	}
	engine.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: *bucket})
	log.Fatal(http.ListenAndServe(*address, &server{engine: engine, uploads: map[string]upload{}}))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// EscapedPath, because Path has already decoded the slashes and question marks inside a key.
	bucket, escaped, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidURI")
		return
	}
	if refused := unsupported(r, name); refused != "" {
		fail(w, http.StatusBadRequest, "Unsupported "+refused)
		return
	}
	// Read before any lock is taken: a slow or cut upload must not hold up the other requests.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimitBytes))
	if err != nil {
		fail(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	query := r.URL.Query()
	switch {
	case name == "" && r.Method == http.MethodGet:
		s.list(w, bucket, query)
	case name == "":
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.read(w, r, bucket, name)
	case query.Has("uploads"), query.Has("uploadId"):
		s.multipart(w, r, bucket, name, body)
	case r.Method == http.MethodPut:
		s.write(w, r.Header, bucket, name, body)
	case r.Method == http.MethodDelete:
		s.remove(w, bucket, name)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

// unsupported names the part of a request that would be ignored, and so be answered wrongly.
func unsupported(r *http.Request, name string) string {
	takesMatch := r.Method == http.MethodPut && !r.URL.Query().Has("uploadId")
	for header := range r.Header {
		condition := strings.HasPrefix(header, "X-Goog-If-") && (header != matchHeader || !takesMatch)
		if condition || header == "X-Goog-Copy-Source" || header == "Content-Encoding" {
			return header
		}
	}
	// The engine keeps keys as file names, where these would name another key or a folder.
	for _, segment := range strings.Split(name, "/") {
		if name != "" && (segment == "" || segment == "." || segment == "..") {
			return "key " + name
		}
	}
	return ""
}

// write reports whether it stored the object; if not, the refusal is answered already.
func (s *server) write(w http.ResponseWriter, header http.Header, bucket, name string, body []byte) bool {
	target := url.Values{"uploadType": {"media"}, "name": {name}}
	if match := header.Values(matchHeader); len(match) > 0 {
		// The engine would take an empty condition for none at all.
		if _, err := strconv.ParseInt(match[0], 10, 64); err != nil || len(match) > 1 {
			return fail(w, http.StatusBadRequest, "InvalidArgument")
		}
		target.Set("ifGenerationMatch", match[0])
	}
	address := "http://engine/upload/storage/v1/b/" + url.PathEscape(bucket) + "/o?" + target.Encode()
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fail(w, http.StatusBadRequest, "InvalidURI")
	}
	for key, values := range header {
		if key == "Content-Type" || key == "Cache-Control" || strings.HasPrefix(key, "X-Goog-Meta-") {
			request.Header[key] = values
		}
	}
	s.lock.Lock()
	answer, err := s.engine.HTTPClient().Do(request)
	s.lock.Unlock()
	if err != nil {
		return fail(w, http.StatusInternalServerError, "InternalError")
	}
	defer answer.Body.Close()
	var stored struct{ Generation, Etag string }
	err = json.NewDecoder(answer.Body).Decode(&stored)
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fail(w, answer.StatusCode, "PreconditionFailed")
	case answer.StatusCode == http.StatusNotFound:
		return fail(w, answer.StatusCode, "NoSuchBucket")
	case answer.StatusCode != http.StatusOK || err != nil || stored.Generation == "":
		return fail(w, http.StatusInternalServerError, "InternalError")
	}
	w.Header().Set(generationHeader, stored.Generation)
	w.Header().Set("ETag", strconv.Quote(stored.Etag))
	return true
}

func (s *server) read(w http.ResponseWriter, r *http.Request, bucket, name string) {
	s.lock.RLock()
	object, err := s.engine.GetObjectStreaming(bucket, name)
	var content []byte
	if err == nil {
		content, err = io.ReadAll(object.Content)
		object.Close()
	}
	s.lock.RUnlock()
	if err != nil {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	for key, value := range object.Metadata {
		w.Header().Set("X-Goog-Meta-"+key, value)
	}
	if object.CacheControl != "" {
		w.Header().Set("Cache-Control", object.CacheControl)
	}
	w.Header().Set("Content-Type", object.ContentType)
	w.Header().Set("ETag", strconv.Quote(object.Etag))
	w.Header().Set(generationHeader, strconv.FormatInt(object.Generation, 10))
	http.ServeContent(w, r, "", object.Updated, bytes.NewReader(content))
}

func (s *server) remove(w http.ResponseWriter, bucket, name string) {
	s.lock.Lock()
	err := s.engine.Backend().DeleteObject(bucket, name)
	s.lock.Unlock()
	if err != nil {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.WriteHeader(http.StatusNoContent)
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

// list does its own paging: the engine counts objects but not common prefixes, and repeats the prefixes
// on every page.
func (s *server) list(w http.ResponseWriter, bucket string, query url.Values) {
	prefix, delimiter, startAfter := query.Get("prefix"), query.Get("delimiter"), query.Get("start-after")
	token, err := base64.URLEncoding.DecodeString(query.Get("continuation-token"))
	limit := pageKeys
	if asked := query.Get("max-keys"); asked != "" && err == nil {
		limit, err = strconv.Atoi(asked)
	}
	if err != nil || limit < 1 {
		fail(w, http.StatusBadRequest, "InvalidArgument")
		return
	}
	s.lock.RLock()
	found, err := s.engine.ListObjectsWithOptionsPaginated(bucket, fakestorage.ListOptions{Prefix: prefix})
	s.lock.RUnlock()
	if err != nil {
		log.Printf("list %s: %v", bucket, err)
		fail(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	page, last := listPage{Name: bucket, Prefix: prefix}, string(token)
	for _, object := range found.Objects { // sorted by the engine
		entry, rolledUp := object.Name, false
		if head, _, cut := strings.Cut(object.Name[len(prefix):], delimiter); cut && delimiter != "" {
			entry, rolledUp = prefix+head+delimiter, true
		}
		if object.Name <= startAfter || entry <= last {
			continue
		}
		if page.KeyCount == min(limit, pageKeys) {
			page.IsTruncated = true
			page.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
			break
		}
		if rolledUp {
			page.CommonPrefixes = append(page.CommonPrefixes, prefixEntry{entry})
		} else {
			updated := object.Updated.UTC().Format(time.RFC3339Nano)
			page.Contents = append(page.Contents, objectEntry{entry, updated, strconv.Quote(object.Etag), object.Size})
		}
		page.KeyCount, last = page.KeyCount+1, entry
	}
	reply(w, page)
}

func reply(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(document); err != nil {
		log.Print(err)
	}
}

func fail(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	reply(w, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}{Code: code})
	return false
}
