package node

import "strings"

// The rows of the doors for foreign clients. Through these a role needs no verb foreign.

const (
	tfInfo  = `{"ID":"lock-XX","Operation":"apply","Who":"h-XX","Version":"1.11.4","Created":"2026-01-02T03:04:05.678Z"}`
	tfState = `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"l","outputs":{"o":{"value":"v-XX",` +
		`"type":"string"}},"resources":[]}`
)

var (
	state  = sent(request{method: "POST", path: "/terraform/PATH?namespace=SPACE", body: tfState})
	locked = sent(request{method: "LOCK", path: "/terraform/PATH?namespace=SPACE", body: tfInfo})
)

var terraformRows = []row{
	{"list-states", "", befores{state}, get("/terraform/?prefix=PATH"), "x"},
	{"read-state", "", befores{state}, get("/terraform/PATH"), "v"},
	{"read-state", "by native", befores{state}, get("/v1/records/terraform/PATH"), "v"},
	{"write-state", "", nil, posted("/terraform/PATH", tfState), ""},
	{"write-state", "same", befores{state}, posted("/terraform/PATH", tfState), ""},
	{"write-state", "over", befores{state}, posted("/terraform/PATH", strings.Replace(tfState, `"serial":1`, `"serial":2`, 1)), ""},
	{"write-state", "by native", befores{state}, of("PUT", "/v1/records/terraform/PATH", "x"), ""},
	{"delete-state", "", befores{state}, of("DELETE", "/terraform/PATH", ""), ""},
	{"delete-state", "by native", befores{state}, of("DELETE", "/v1/records/terraform/PATH", ""), ""},
	{"lock-state", "", nil, of("LOCK", "/terraform/PATH", tfInfo), ""},
	{"lock-state", "held", befores{locked}, of("LOCK", "/terraform/PATH", `{"ID":"other","Who":"me"}`), ""},
	{"unlock-state", "", befores{locked}, of("UNLOCK", "/terraform/PATH", tfInfo), ""},
	{"unlock-state", "forced", befores{locked}, of("UNLOCK", "/terraform/PATH", ""), ""},
	{"show-lock", "", befores{locked}, get("/terraform/PATH/lock"), "h"},
}

var (
	container = sent(request{method: "PUT", path: "azure:BOX?restype=container"})
	blob      = sent(request{method: "PUT", path: "azure:BLOB", body: "v-XX", headers: []string{"X-Ms-Blob-Type", "BlockBlob"}})
	boxed     = befores{container, blob}
	guid      = "11111111-1111-1111-1111-111111111111"
	leaseBlob = sent(request{method: "PUT", path: "azure:BLOB?comp=lease", headers: []string{
		"X-Ms-Lease-Action", "acquire", "X-Ms-Lease-Duration", "-1", "X-Ms-Proposed-Lease-Id", guid}})
	block     = sent(request{method: "PUT", path: "azure:BLOB?comp=block&blockid=MQ==", body: "b"})
	blockList = `<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>MQ==</Latest></BlockList>`
)

// azureRows have a container for each cell.
var azureRows = []row{
	{"list-containers", "", boxed, get("azure:/?comp=list"), "c"},
	{"get-account", "", nil, get("azure:/?restype=account&comp=properties"), ""},
	{"get-service", "", nil, get("azure:/?restype=service&comp=properties"), ""},
	{"create-container", "", nil, of("PUT", "azure:BOX?restype=container", ""), ""},
	{"get-container", "", boxed, get("azure:BOX?restype=container"), ""},
	{"delete-container", "", befores{container}, of("DELETE", "azure:BOX?restype=container", ""), ""},
	{"set-container-metadata", "", boxed, of("PUT", "azure:BOX?restype=container&comp=metadata", "", "X-Ms-Meta-K", "v"), ""},
	{"get-container-acl", "", boxed, get("azure:BOX?restype=container&comp=acl"), ""},
	{"list-blobs", "", boxed, get("azure:BOX?restype=container&comp=list&prefix=XX"), "x"},
	{"lease-container", "", befores{container}, of("PUT", "azure:BOX?restype=container&comp=lease", "", "X-Ms-Lease-Action",
		"acquire", "X-Ms-Lease-Duration", "-1"), ""},
	{"get-blob", "", boxed, get("azure:BLOB"), "v"},
	{"get-blob", "by native", boxed, get("/v1/records/azure/" + account + "BLOB"), "v"},
	{"put-blob", "", befores{container}, of("PUT", "azure:BLOB", "new", "X-Ms-Blob-Type", "BlockBlob"), ""},
	{"put-blob", "over", boxed, of("PUT", "azure:BLOB", "new", "X-Ms-Blob-Type", "BlockBlob"), ""},
	{"put-blob", "by native", boxed, of("PUT", "/v1/records/azure/"+account+"BLOB", "new"), ""},
	{"delete-blob", "", boxed, of("DELETE", "azure:BLOB", ""), ""},
	{"get-blob-metadata", "", boxed, get("azure:BLOB?comp=metadata"), ""},
	{"set-blob-metadata", "", boxed, of("PUT", "azure:BLOB?comp=metadata", "", "X-Ms-Meta-K", "v"), ""},
	{"set-blob-properties", "", boxed, of("PUT", "azure:BLOB?comp=properties", "", "X-Ms-Blob-Content-Type", "t/t"), ""},
	{"snapshot-blob", "", boxed, of("PUT", "azure:BLOB?comp=snapshot", ""), ""},
	{"put-block", "", befores{container}, of("PUT", "azure:BLOB?comp=block&blockid=MQ==", "b"), ""},
	{"put-block-list", "", befores{container, block}, of("PUT", "azure:BLOB?comp=blocklist", blockList), ""},
	{"get-block-list", "", boxed, get("azure:BLOB?comp=blocklist&blocklisttype=all"), ""},
	{"lease-blob", "", boxed, of("PUT", "azure:BLOB?comp=lease", "", "X-Ms-Lease-Action", "acquire",
		"X-Ms-Lease-Duration", "-1"), ""},
	{"lease-blob", "release", befores{container, blob, leaseBlob}, of("PUT", "azure:BLOB?comp=lease", "",
		"X-Ms-Lease-Action", "release", "X-Ms-Lease-Id", guid), ""},
	{"lease-blob", "break", befores{container, blob, leaseBlob}, of("PUT", "azure:BLOB?comp=lease", "",
		"X-Ms-Lease-Action", "break"), ""},
	{"abort-copy", "", boxed, of("PUT", "azure:BLOB?comp=copy&copyid="+guid, "", "X-Ms-Copy-Action", "abort"), ""},
}
