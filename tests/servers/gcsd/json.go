// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// The JSON dialect, which Google's own libraries speak, is the engine's: nothing is added to it, and what it
// would answer wrongly is refused.
var jsonPaths = []string{"/storage/v1/", "/upload/storage/v1/", "/upload/resumable/", "/download/storage/v1/"}

func speaksJSON(r *http.Request) bool {
	for _, prefix := range jsonPaths {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return true
		}
	}
	return false
}

func (s *server) json(w http.ResponseWriter, r *http.Request, body []byte) {
	isUpload := strings.HasPrefix(r.URL.Path, "/upload/storage/v1/")
	for parameter := range r.URL.Query() {
		if strings.HasPrefix(parameter, "if") && (parameter != "ifGenerationMatch" || !isUpload) {
			fail(w, http.StatusBadRequest, "Unsupported "+parameter)
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.lock.RLock()
		defer s.lock.RUnlock()
	} else {
		s.lock.Lock()
		defer s.lock.Unlock()
	}
	s.engine.HTTPHandler().ServeHTTP(w, r)
}
