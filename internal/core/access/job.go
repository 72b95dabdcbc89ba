package access

import "strings"

// runsRoot is where "leasehold run --at-most-every" keeps what it knows of the runs of a job, by the job's path. The
// right to read or write records at that path is enough for the record of its runs: a team that has a prefix needs no
// second binding to run its jobs.
const runsRoot = ".runs/"

// ofRecords are the verbs for records.
const ofRecords = Verbs(1)<<RecordRead | Verbs(1)<<RecordWrite

// jobOf returns the path of the job whose runs a record has, if the verb is one for records.
func jobOf(v Verb, path string) (string, bool) {
	if !ofRecords.Has(v) {
		return "", false
	}
	job, ok := strings.CutPrefix(path, runsRoot)
	return job, ok && job != ""
}
