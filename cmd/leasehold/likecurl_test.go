package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// likeCurl is curl, as far as the docs use it, so that what they show runs where there is none.
func likeCurl() {
	method, target, body, get, fail := "", "", "", false, false
	header, form := http.Header{}, []string{}
	args := os.Args[1:]
	next := func() (arg string) {
		arg, args = args[0], args[1:]
		return arg
	}
	for len(args) > 0 {
		switch arg := next(); arg {
		case "-s", "-sS", "-N":
		case "--fail-with-body": // -f would hide what the server says
			fail = true
		case "-G":
			get = true
		case "-X":
			method = next()
		case "-H":
			name, value, _ := strings.Cut(next(), ":")
			header.Add(name, strings.TrimSpace(value))
		case "-d", "--data-binary":
			body = next()
			header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl says it
		case "--data-urlencode":
			name, value, _ := strings.Cut(next(), "=")
			form = append(form, name+"="+url.QueryEscape(value))
		default:
			if strings.HasPrefix(arg, "-") || target != "" {
				fmt.Fprintf(os.Stderr, "curl: %s is not known here\n", arg)
				os.Exit(2)
			}
			target = arg
		}
	}
	switch {
	case get:
		target += "?" + strings.Join(form, "&")
	case method == "" && body != "":
		method = "POST"
	}
	request, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(7)
	}
	_, _ = io.Copy(os.Stdout, response.Body)
	if fail && response.StatusCode >= http.StatusBadRequest {
		os.Exit(22)
	}
}
