package tfstate

import "time"

// A State is what lists show about one state.
type State struct {
	Name     string     `json:"name"`
	Serial   uint64     `json:"serial"`
	Lineage  string     `json:"lineage"`
	Writer   string     `json:"terraform_version,omitempty"`
	Size     int64      `json:"size"`
	Revision uint64     `json:"revision"`
	Written  *time.Time `json:"written,omitempty"`
	Holder   string     `json:"holder,omitempty"` // who wrote it
	Versions int        `json:"versions"`         // that are kept, this one included
	Problem  string     `json:"error,omitempty"`  // why nothing is known of it
	Lock     *Lock      `json:"lock,omitempty"`
	Permit   *Permit    `json:"allows_lineage,omitempty"` // of one state, not in lists
	// Why nobody gets the lock though nobody has it.
	Unacknowledged string     `json:"unacknowledged,omitempty"` // the unclean end of whose lock
	AvailableAt    *time.Time `json:"available_at,omitempty"`
}

// A Version is one version of a state's contents.
type Version struct {
	Revision uint64     `json:"revision"`
	Serial   uint64     `json:"serial"`
	Lineage  string     `json:"lineage"`
	Writer   string     `json:"terraform_version,omitempty"`
	Size     int64      `json:"size"`
	Written  *time.Time `json:"written,omitempty"`
	Holder   string     `json:"holder,omitempty"`
	Current  bool       `json:"current"`
	Deleted  bool       `json:"deleted,omitempty"` // it was the last one before the state was deleted
	Problem  string     `json:"error,omitempty"`
}

// DefaultKeep is how many former versions of a state are kept.
const DefaultKeep = 20

// A Page is one page of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// MaxLimit is the largest number of items on a page.
const MaxLimit = 500
