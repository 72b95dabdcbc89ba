package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"syscall"
	"time"
)

// likeTerraform is a program that does, one after the other, what its arguments say, as
// Terraform would: by the addresses in its environment and nothing else.
func likeTerraform() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	const info = `{"ID":"like-%d","Operation":"OperationTypeApply","Who":%q,"Version":"1.11.4","Created":"2026-01-02T03:04:05Z"}`
	body := fmt.Sprintf(info, os.Getpid(), "liketerraform")
	for _, word := range os.Args[1:] {
		switch word {
		case "asme": // as Terraform calls itself
			me, _ := user.Current()
			host, _ := os.Hostname()
			body = fmt.Sprintf(info, os.Getpid(), me.Username+"@"+host)
		case "elsewhere": // as with a lock_address in the backend block
			_ = os.Setenv("TF_HTTP_LOCK_ADDRESS", os.Getenv("TF_HTTP_ADDRESS"))
		case "lock":
			likeSend("lock", "LOCK", os.Getenv("TF_HTTP_LOCK_ADDRESS"), body)
		case "unlock":
			likeSend("unlock", "UNLOCK", os.Getenv("TF_HTTP_UNLOCK_ADDRESS"), body)
		case "write1", "write2":
			address, _ := url.Parse(os.Getenv("TF_HTTP_ADDRESS"))
			address.RawQuery = fmt.Sprintf("ID=like-%d", os.Getpid())
			likeSend("write", "POST", address.String(), `{"version":4,"serial":`+word[5:]+`,"lineage":"L"}`)
		case "exit3":
			os.Exit(3)
		case "killme":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			time.Sleep(time.Minute)
		case "untilterm":
			<-term
		}
	}
}

func likeSend(what, method, address, body string) {
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err == nil {
		var response *http.Response
		if response, err = http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("%d", response.StatusCode)
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}
