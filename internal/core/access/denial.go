package access

import "github.com/leasehold/leasehold"

// Denial says that the asker may not do something at a path, or, if that is empty, everywhere in a namespace: which
// verb is missing where, and how to find out more.
func (p *Permit) Denial(v Verb, namespace, path string) string {
	where, about, in, flag := path, " "+path, "", ""
	if path == "" {
		where, about = "everything", ""
	}
	if namespace != leasehold.DefaultNamespace {
		in, flag = " in namespace "+namespace, " --namespace "+namespace
	}
	return p.Asker.Principal + " may not " + v.Doing() + " " + where + in + ": that needs the verb " + v.String() +
		" there; ask an admin, or see leasehold access can-i " + v.String() + about + flag
}

// Doing is a verb as a sentence has it before a path.
func (v Verb) Doing() string {
	switch v {
	case RecordRead:
		return "read the record"
	case RecordWrite:
		return "write the record"
	case Foreign:
		return "reach" // other than through its own door
	case Audit:
		return "read the journal of"
	}
	return v.String()
}

// Unproven says that there is no longer anything in the policy that proves an asker.
func (a *Asker) Unproven() string {
	if a.Token != "" {
		return "the token " + a.Token + " was revoked: log in again with leasehold login"
	}
	return "the issuer or certificate rule by which " + a.Principal + " was proven has been removed: log in with " +
		"another credential, or ask an admin"
}
