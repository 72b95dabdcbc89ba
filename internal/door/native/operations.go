package native

import (
	"strings"

	"github.com/leasehold/leasehold/internal/access/document"
)

// An operation is one thing that can be asked. Method and path find it.
type operation struct {
	name   string // in metrics and in the journal
	method string
	path   string // as http.ServeMux writes it
	params string // what the query may have, beside the namespace
	serve  func(*call) error
}

// endless reports whether an answer goes on until somebody ends it: its length means nothing.
func (o *operation) endless() bool { return o.name == "watch" }

// global reports whether an operation is about the whole cluster, and so about no namespace. Who may do what is, but
// for a question about a path.
func (o *operation) global() bool {
	return strings.HasPrefix(o.path, "/v1/cluster") ||
		strings.HasPrefix(o.path, "/v1/access") && !strings.HasPrefix(o.params, "verb ")
}

// known returns what a query may have.
func (o *operation) known() []string {
	params := strings.Fields(o.params)
	if o.global() {
		return params
	}
	return append([]string{"namespace"}, params...)
}

const (
	pageParams    = "prefix after limit"
	journalParams = "resource prefix holder from until oldest after limit"
)

// operations is the whole of /v1/. openapi.yaml lists the same.
var operations = []operation{
	{"acquire", "POST", "/v1/acquire", "", (*call).acquire},
	{"renew", "POST", "/v1/renew", "", (*call).renew},
	{"release", "POST", "/v1/release", "", (*call).release},
	{"change", "POST", "/v1/change", "", (*call).change},
	{"break", "POST", "/v1/break", "", (*call).breakLease},
	{"move", "POST", "/v1/move", "", (*call).move},
	{"ask", "POST", "/v1/ask", "", (*call).ask},
	{"acknowledge", "POST", "/v1/acknowledge", "", (*call).acknowledge},
	{"definitions", "GET", "/v1/definitions", pageParams, (*call).definitions},
	{"definition", "GET", "/v1/definitions/{path...}", "", (*call).definition},
	{"define", "PUT", "/v1/definitions/{path...}", "", (*call).define},
	{"change-definition", "PATCH", "/v1/definitions/{path...}", "", (*call).changeDefinition},
	{"undefine", "DELETE", "/v1/definitions/{path...}", "by reason", (*call).undefine},
	{"open-session", "POST", "/v1/sessions", "", (*call).openSession},
	{"renew-session", "POST", "/v1/sessions/{id}/renew", "seen", (*call).renewSession},
	{"sessions", "GET", "/v1/sessions", pageParams, (*call).sessions},
	{"session", "GET", "/v1/sessions/{id}", "", (*call).session},
	{"close-session", "DELETE", "/v1/sessions/{id}", "abandon", (*call).closeSession},
	{"resources", "GET", "/v1/resources", pageParams + " all " + filterParams, (*call).resources},
	{"resource", "GET", "/v1/resources/{path...}", "queue", (*call).resource},
	{"advice", "GET", "/v1/advice/{path...}", "", (*call).advice},
	{"alarms", "GET", "/v1/alarms", "prefix kind after limit", (*call).alarms},
	{"acknowledge-alarm", "POST", "/v1/alarms/acknowledge", "", (*call).acknowledgeAlarm},
	{"history", "GET", "/v1/history", "resource before limit", (*call).history},
	{"audit", "GET", "/v1/audit", "actor verb " + journalParams, (*call).audit},
	{"holds", "GET", "/v1/holds", journalParams, (*call).holds},
	{"watch", "GET", "/v1/watch", "prefix resource session since values previous", (*call).watch},
	{"records", "GET", "/v1/records", "prefix from to after limit keys count revision", (*call).records},
	{"delete-records", "DELETE", "/v1/records", "prefix from to", (*call).deleteRecords},
	{"record", "GET", "/v1/records/{path...}", "revision version", (*call).record},
	{"put-record", "PUT", "/v1/records/{path...}", "session keep version", (*call).putRecord},
	{"delete-record", "DELETE", "/v1/records/{path...}", "", (*call).deleteRecord},
	{"versions", "GET", "/v1/versions/{path...}", "after limit", (*call).versions},
	{"raise-tokens", "POST", "/v1/tokens/raise", "", (*call).raiseTokens},
	{"txn", "POST", "/v1/txn", "", (*call).txn},
	{"cluster", "GET", "/v1/cluster", "", (*call).cluster},
	{"add-server", "POST", "/v1/cluster/members", "", (*call).addServer},
	{"upgrade-cluster", "POST", "/v1/cluster/upgrade", "", (*call).upgradeCluster},
	{"promote-server", "POST", "/v1/cluster/members/{name}/promote", "", (*call).promoteServer},
	{"remove-server", "DELETE", "/v1/cluster/members/{name}", "", (*call).removeServer},
	{"transfer-lead", "POST", "/v1/cluster/transfer", "", (*call).transferLead},
	{"limits", "GET", "/v1/cluster/limits", "", (*call).limits},
	{"set-limits", "POST", "/v1/cluster/limits", "", (*call).setLimits},
	{"quarantine", "GET", "/v1/cluster/quarantine", "", (*call).quarantine},
	{"end-quarantine", "POST", "/v1/cluster/quarantine/end", "", (*call).endQuarantine},
	{"check-cluster", "GET", "/v1/cluster/check", "", (*call).checkCluster},
	{"backup", "GET", "/v1/cluster/backup", "", (*call).backup},
	{"access", "GET", "/v1/access", "", (*call).access},
	{"apply-access", "POST", "/v1/access/apply", "", (*call).applyAccess},
	{"can-i", "GET", "/v1/access/can-i", "verb path as group+", (*call).canI},
	{"who-can", "GET", "/v1/access/who-can", "verb path", (*call).whoCan},
	{"whoami", "GET", "/v1/access/whoami", "", (*call).whoami},
	{"create-token", "POST", "/v1/access/tokens", "", (*call).createToken},
	{"tokens", "GET", "/v1/access/tokens", pageParams, listItems(&document.Tokens)},
	{"revoke-token", "DELETE", "/v1/access/tokens/{name...}", "by reason", deleteItem(&document.Tokens)},
	{"roles", "GET", "/v1/access/roles", pageParams, listItems(&document.Roles)},
	{"put-role", "PUT", "/v1/access/roles/{name...}", "by reason", putItem(&document.Roles)},
	{"delete-role", "DELETE", "/v1/access/roles/{name...}", "by reason", deleteItem(&document.Roles)},
	{"bindings", "GET", "/v1/access/bindings", pageParams, listItems(&document.Bindings)},
	{"put-binding", "PUT", "/v1/access/bindings/{name...}", "by reason", putItem(&document.Bindings)},
	{"delete-binding", "DELETE", "/v1/access/bindings/{name...}", "by reason", deleteItem(&document.Bindings)},
	{"quotas", "GET", "/v1/access/quotas", pageParams, listItems(&document.Quotas)},
	{"put-quota", "PUT", "/v1/access/quotas/{name...}", "by reason", putItem(&document.Quotas)},
	{"delete-quota", "DELETE", "/v1/access/quotas/{name...}", "by reason", deleteItem(&document.Quotas)},
	{"issuers", "GET", "/v1/access/issuers", pageParams, listItems(&document.Issuers)},
	{"put-issuer", "PUT", "/v1/access/issuers/{name...}", "by reason", putItem(&document.Issuers)},
	{"delete-issuer", "DELETE", "/v1/access/issuers/{name...}", "by reason", deleteItem(&document.Issuers)},
	{"certificates", "GET", "/v1/access/certificates", pageParams, listItems(&document.Certificates)},
	{"put-certificate", "PUT", "/v1/access/certificates/{name...}", "by reason", putItem(&document.Certificates)},
	{"delete-certificate", "DELETE", "/v1/access/certificates/{name...}", "by reason",
		deleteItem(&document.Certificates)},
}
