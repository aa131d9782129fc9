// SPDX-License-Identifier: Apache-2.0

// gcsd is a Google Cloud Storage server for tests. The objects live in the fake-gcs-server engine; what
// is added here is the XML dialect that obstore speaks and that the stock server refuses: PUT with
// x-goog-if-generation-match, multipart uploads, and listings in pages. The JSON dialect is the engine's.
//
// It has no authentication. What it cannot do it answers with 400, never with a success that did less.
package main

import (
	"bytes"
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

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

const (
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

func main() {
	address := flag.String("addr", "127.0.0.1:4443", "host and port to listen on")
	root := flag.String("root", "", "folder for the objects; empty keeps them in memory")
	bucket := flag.String("bucket", "arco-test", "bucket that exists from the start")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0)) // flags after it would be ignored
	}
	// The address is sent to clients whose uploads take more than one request.
	options := fakestorage.Options{NoListener: true, StorageRoot: *root, ExternalURL: "http://" + *address}
	engine, err := fakestorage.NewServerWithOptions(options)
	if err != nil {
		log.Fatal(err)
	}
	engine.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: *bucket})
	log.Fatal(http.ListenAndServe(*address, &server{engine: engine, uploads: map[string]upload{}}))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// EscapedPath, because Path has already decoded the slashes and question marks inside a key.
	// obstore encodes freely: bucket b-1 arrives as b%2D1, key a/b as a%2Fb.
	escapedBucket, escapedName, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	bucket, bucketErr := url.PathUnescape(escapedBucket)
	name, nameErr := url.PathUnescape(escapedName)
	if bucketErr != nil || nameErr != nil {
		fail(w, http.StatusBadRequest, "InvalidURI")
		return
	}
	isJSON := speaksJSON(r)
	if isJSON {
		name = "" // what stands there is no key
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
	case isJSON:
		s.json(w, r, body)
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
	var stored struct {
		Generation, Etag string
		Error            struct{ Message string }
	}
	err = json.NewDecoder(answer.Body).Decode(&stored)
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fail(w, answer.StatusCode, "PreconditionFailed")
	case answer.StatusCode == http.StatusNotFound:
		return fail(w, answer.StatusCode, "NoSuchBucket")
	case answer.StatusCode != http.StatusOK || err != nil || stored.Generation == "":
		log.Printf("put %s: status %d, %v, %s", name, answer.StatusCode, err, stored.Error.Message)
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
