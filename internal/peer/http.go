//go:build linux

package peer

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// plain keeps no connection, so that a test that looks for leaks finds none of ours.
var plain = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// httpDo returns the body of an answer that says yes.
func httpDo(method, url, body string) ([]byte, error) { return httpSend(plain, method, url, "", body) }

// httpSend is httpDo by a client that may have a token.
func httpSend(client *http.Client, method, url, token, body string) ([]byte, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, b)
	}
	return b, err
}

// listens reports whether somebody listens at the server's address.
func (s *Server) listens() error {
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		return err
	}
	return c.Close()
}
