package azure

import "regexp"

// A difference is a way in which azurite 3.37.0 is known not to be as Azure, or not as
// Azure's documentation says. It is where we differ from azurite.
type difference struct {
	what   string
	names  *regexp.Regexp // of the trials
	azure  string         // how what Azure answers begins, and so do we; empty: as the trial without it
	source string
}

var differences = []difference{
	{
		what:  "who uses a blob under a lease that has ended is told that it is lost, not that there never was one",
		names: regexp.MustCompile(`^blob: (put|set metadata|delete|head|get|snapshot) with A when (broken|expired)$`), azure: "412 LeaseLost",
		source: "Blob service error codes, LeaseLost: \"a lease ID was specified, but the lease for the blob has expired\"; Azure/Azurite#2352, #635",
	},
	{
		what:  "an expired lease is renewed by its own id alone",
		names: regexp.MustCompile(`^(blob|container): renew B when expired$`), azure: "409 LeaseIdMismatchWithLeaseOperation",
		source: "Lease Blob, \"Outcomes of lease operations on blobs by lease state\"; azurite renews it for anybody",
	},
	{
		what:  "a lease id is a GUID",
		names: regexp.MustCompile(`^raw: acquire by a name when `), azure: "400 InvalidHeaderValue",
		source: "Lease Blob, x-ms-proposed-lease-id: \"returns 400 (Invalid request) if the proposed lease ID isn't in the correct format\"; Azure/Azurite#2367, Azure/azure-sdk-for-net#19329",
	},
	{
		what:  "a GUID is the same however it is written",
		names: regexp.MustCompile(`^raw: renew (\{A\}|A without dashes|A in capitals) when `), source: "Lease Blob: see Guid Constructor (String) for a list of valid formats; azurite compares texts",
	},
	{
		what:  "a break period is from 0 to 60 seconds",
		names: regexp.MustCompile(`^raw: break in (61|-1) when `), azure: "400 InvalidHeaderValue",
		source: "Lease Blob, x-ms-lease-break-period; azurite takes 61 and fails with 500 at -1",
	},
	{
		what:  "a wrong duration is wrong, no matter who holds the lease",
		names: regexp.MustCompile(`^raw: acquire for \d+ when (leased|infinite|breaking)$`), azure: "400 InvalidHeaderValue",
		source: "headers are checked before state; azurite looks at the state first",
	},
	{
		what:  "to acquire needs a duration",
		names: regexp.MustCompile(`^raw: acquire without duration when `), azure: "400 MissingRequiredHeader",
		source: "Lease Blob, x-ms-lease-duration: \"required for acquire\"; azurite takes none for infinite",
	},
	{
		what:  "what is missing or unknown has a code",
		names: regexp.MustCompile(`^raw: (no action|unknown action|renew without id|release without id|change without ids|change to nothing) when `), azure: "400 ",
		source: "Common REST API error codes; azurite answers 400 without x-ms-error-code",
	},
}
