package object

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Cause is one thing that is wrong with an object, in the words of Kubernetes.
type Cause struct {
	Reason  string `json:"reason"` // such as FieldValueInvalid
	Message string `json:"message"`
	Field   string `json:"field"`
}

// Error returns the cause as it stands in the message of an error.
func (c *Cause) Error() string { return c.Field + ": " + c.Message }

// Required is the cause of a field that is missing.
func Required(field, detail string) Cause {
	return Cause{"FieldValueRequired", "Required value: " + detail, field}
}

// Invalid is the cause of a field that has a wrong value, which is quoted if it is a text.
func Invalid(field, value, detail string) Cause {
	return Cause{"FieldValueInvalid", "Invalid value: " + value + ": " + detail, field}
}

// TooLong is the cause of a text that is too long.
func TooLong(field string, most int) Cause {
	return Cause{"FieldValueTooLong", fmt.Sprintf("Too long: may not be more than %d bytes", most), field}
}

// MaxHolder is how many bytes the name of a holder has at most: as many as names have in Leasehold.
const MaxHolder = 1024

// maxCauses is how many things that are wrong with an object are told: each has a text of its own, and an object may
// have thousands.
const maxCauses = 16

// Validate returns what is wrong with an object, whatever was there before: the first of it, if it is much.
func (l *Lease) Validate() []Cause {
	causes := l.causes()
	return causes[:min(len(causes), maxCauses)]
}

func (l *Lease) causes() (causes []Cause) {
	m, s := &l.Meta, &l.Spec
	if m.Name == "" {
		causes = append(causes, Required("metadata.name", "name or generateName is required"))
	} else if detail := CheckName(m.Name); detail != "" {
		causes = append(causes, Invalid("metadata.name", quoted(m.Name), detail))
	}
	causes = append(causes, validateLabels(m.Labels)...)
	causes = append(causes, validateAnnotations(m.Annotations)...)
	causes = append(causes, validateOwners(m.Owners)...)
	for i, f := range m.Finalizers {
		if detail := checkQualified(f); detail != "" && len(causes) < maxCauses {
			causes = append(causes, Invalid(fmt.Sprintf("metadata.finalizers[%d]", i), quoted(f), detail))
		}
	}
	if n := s.DurationSeconds; n != nil && *n <= 0 {
		causes = append(causes, Invalid("spec.leaseDurationSeconds", strconv.Itoa(int(*n)), "must be greater than 0"))
	}
	if n := s.Transitions; n != nil && *n < 0 {
		causes = append(causes, Invalid("spec.leaseTransitions", strconv.Itoa(int(*n)),
			"must be greater than or equal to 0"))
	}
	if len(s.HolderName()) > MaxHolder {
		causes = append(causes, TooLong("spec.holderIdentity", MaxHolder))
	}
	return causes
}

// validateLabels says what is wrong with labels: selectors have to be able to name them.
func validateLabels(labels map[string]string) (causes []Cause) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(causes) >= maxCauses {
			break
		}
		if detail := checkQualified(key); detail != "" {
			causes = append(causes, Invalid("metadata.labels", quoted(key), detail))
		}
		if detail := checkLabelValue(labels[key]); detail != "" {
			causes = append(causes, Invalid("metadata.labels", quoted(labels[key]), detail))
		}
	}
	return causes
}

// validateAnnotations says what is wrong with the keys of annotations. Their values may be anything.
func validateAnnotations(annotations map[string]string) (causes []Cause) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if detail := checkQualified(strings.ToLower(key)); detail != "" && len(causes) < maxCauses {
			causes = append(causes, Invalid("metadata.annotations", quoted(key), detail))
		}
	}
	return causes
}

// validateOwners says what owners lack.
func validateOwners(owners []Owner) (causes []Cause) {
	for i := range owners {
		at, o := fmt.Sprintf("metadata.ownerReferences[%d].", i), &owners[i]
		for _, f := range []struct{ name, value string }{
			{"apiVersion", o.APIVersion}, {"kind", o.Kind}, {"name", o.Name}, {"uid", o.UID},
		} {
			if f.value == "" && len(causes) < maxCauses {
				causes = append(causes, Invalid(at+f.name, `""`, f.name+" must not be empty"))
			}
		}
	}
	return causes
}

const (
	maxName  = 253 // bytes of an object's name, and of the prefix of a label's key
	maxLabel = 63  // bytes of a namespace, and of a label's name and value
)

const badName = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " +
	"must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
	`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

// CheckName says what is wrong with the name of an object; empty: nothing.
func CheckName(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("must be no more than %d bytes", maxName)
	}
	for part := range strings.SplitSeq(name, ".") {
		if !isLabel(part) {
			return badName
		}
	}
	return ""
}

// CheckNamespace says what is wrong with the name of a namespace; empty: nothing.
func CheckNamespace(name string) string {
	switch {
	case len(name) > maxLabel:
		return fmt.Sprintf("must be no more than %d bytes", maxLabel)
	case !isLabel(name):
		return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start " +
			"and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
			"'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	}
	return ""
}

// isLabel reports whether a text is a label of DNS, but for its length.
func isLabel(s string) bool {
	return s != "" && s[0] != '-' && s[len(s)-1] != '-' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

const (
	badKey = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
		"'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	badLabel = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " +
		"must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used " +
		"for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

// checkQualified says what is wrong with the key of a label: a name, perhaps with a prefix before a slash.
func checkQualified(key string) string {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	} else if prefix == "" {
		return "prefix part must be non-empty"
	} else if detail := CheckName(prefix); detail != "" {
		return "prefix part " + detail
	}
	switch {
	case name == "":
		return "name part must be non-empty; " + badKey
	case len(name) > maxLabel:
		return fmt.Sprintf("name part must be no more than %d bytes", maxLabel)
	case !isQualified(name):
		return badKey
	}
	return ""
}

// checkLabelValue says what is wrong with the value of a label; empty: nothing.
func checkLabelValue(value string) string {
	switch {
	case len(value) > maxLabel:
		return fmt.Sprintf("must be no more than %d bytes", maxLabel)
	case value != "" && !isQualified(value):
		return badLabel
	}
	return ""
}

// isQualified reports whether a text can be the name, or the value, of a label, but for its length.
func isQualified(s string) bool {
	const ends = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return s != "" && strings.Trim(s, ends+"-_.") == "" && strings.IndexByte(ends, s[0]) >= 0 &&
		strings.IndexByte(ends, s[len(s)-1]) >= 0
}
