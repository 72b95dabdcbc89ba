package tfstate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// prefix is where all states are: the state S is the record, and its lock a lease on the
// resource, terraform/S.
const prefix = "terraform/"

// A state of the azurerm backend is a blob: azurerm:ACCOUNT/CONTAINER/KEY is the record, and its
// lock a lease on the resource, azure/ACCOUNT/CONTAINER/KEY.
const (
	AzureMark   = "azurerm:" // begins the names of such states
	azurePrefix = "azure/"
)

// OfAzure reports whether a name is that of a state of the azurerm backend.
func OfAzure(state string) bool { return strings.HasPrefix(state, AzureMark) }

// Path returns the path of a state's record, and of the resource that is its lock.
func Path(state string) string {
	if blob, ok := strings.CutPrefix(state, AzureMark); ok {
		return azurePrefix + blob
	}
	return prefix + state
}

// Name returns the name of the state whose record is at a path.
func Name(path string) string {
	if blob, ok := strings.CutPrefix(path, azurePrefix); ok {
		return AzureMark + blob
	}
	return strings.TrimPrefix(path, prefix)
}

// Address returns where a state is, below the address of the server.
func Address(state string) string {
	if blob, ok := strings.CutPrefix(state, AzureMark); ok {
		return "/azurerm/" + v1.EscapePath(blob)
	}
	return "/" + prefix + v1.EscapePath(state)
}

// CheckState reports what is wrong with the name of a state, before anybody is given an address
// that means something else.
func CheckState(name string) error {
	if err := checkText(name); err != nil {
		return err
	}
	segments := strings.Split(name, "/")
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return invalid("the name of the state is %s: between slashes there is at least one character, and neither "+
				". nor ..", brief(name))
		}
	}
	if OfAzure(name) {
		if len(segments) < 3 {
			return invalid("the name of the state is %s: a state of the azurerm backend is written as "+
				"azurerm:ACCOUNT/CONTAINER/KEY", brief(name))
		}
		return nil
	}
	// Some backends lock at STATE/lock, and the door answers there.
	if segments[len(segments)-1] == "lock" {
		return invalid("the name of the state is %s: its last segment cannot be lock, which is the address of a lock",
			brief(name))
	}
	return nil
}

func checkText(name string) error {
	const most = leasehold.MaxName - len(prefix)
	switch {
	case name == "":
		return invalid("the name of the state is missing")
	case len(name) > most:
		return invalid("the name of the state has %d bytes: at most %d are allowed", len(name), most)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return invalid("the name of the state is %s: it must be UTF-8 without control characters", brief(name))
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// brief quotes what somebody sent, short enough for an error message.
func brief(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
