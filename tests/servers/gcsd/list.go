// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/xml"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

const pageKeys = 1000 // the page Cloud Storage sends when the client names no size

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
