package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// doors are those that leases come through.
var doors = []string{"native", "terraform", "azure", "etcd", "kubernetes", "consul", "mcp"}

// FilterFlags adds the flags by which list and top pick leases. The server knows what they mean.
func FilterFlags(cmd *cobra.Command, f *v1.ResourceFilter) {
	flags := cmd.Flags()
	flags.StringVar(&f.Holder, "holder", "", "only leases of this holder; * stands for any text, as in 'ci@*'")
	flags.StringArrayVarP(&f.Labels, "label", "l", nil,
		"only leases with this label: key=value, or key alone (repeatable)")
	flags.StringVar(&f.Session, "session", "", "only leases of this session")
	flags.StringVar(&f.Door, "door", "", "only leases that came through this door: "+strings.Join(doors, ", "))
	flags.StringVar(&f.State, "state", "", "only this state: "+strings.Join(states(), ", "))
	CompleteFlag(cmd, "state", states())
	CompleteFlag(cmd, "door", doors)
}

func states() (names []string) {
	for s := leasehold.Available; s <= leasehold.Expired; s++ {
		names = append(names, s.String())
	}
	return names
}

// filterParts returns what a filter picks by: flags and their values.
func filterParts(f v1.ResourceFilter) (parts [][2]string) {
	all := [][2]string{{"holder", f.Holder}, {"session", f.Session}, {"door", f.Door}, {"state", f.State}}
	for _, label := range f.Labels {
		all = append(all, [2]string{"label", label})
	}
	for _, part := range all {
		if part[1] != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// FilterText returns what a filter picks by, for people; empty if it picks everything.
func FilterText(f v1.ResourceFilter) string {
	var words []string
	for _, part := range filterParts(f) {
		words = append(words, part[0]+" "+part[1])
	}
	return strings.Join(words, ", ")
}

// FilterWords returns a filter as it is typed.
func FilterWords(f v1.ResourceFilter) (words []string) {
	for _, part := range filterParts(f) {
		words = append(words, "--"+part[0], part[1])
	}
	return words
}
