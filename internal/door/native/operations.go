package native

import (
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/door/native/filter"
	"github.com/leasehold/leasehold/internal/door/native/keyword"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// An operation is one thing that can be asked. Method and path find it.
type operation struct {
	name   string // in metrics and in the journal
	method string
	path   string // as http.ServeMux writes it
	params string // what the query may have, beside the namespace
	resp   string // its command in RESP, and what stands before all keywords; empty: a stream of bytes, only by HTTP
	action
}

// endless reports whether an answer goes on until somebody ends it: its length means nothing.
func (o *operation) endless() bool { return o.name == "watch" }

// global reports whether an operation is about the whole cluster, and so about no namespace. Who may do what is, but
// for a question about a path.
func (o *operation) global() bool {
	return strings.HasPrefix(o.path, "/v1/cluster") || o.path == "/v1/namespaces" ||
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

	reservationParams = "resource prefix holder from until"
)

// operations is the whole of /v1/. openapi.yaml lists the same.
var operations = []operation{
	{"acquire", "POST", "/v1/acquire", "", "ACQUIRE resource",
		orLonger(whenFailed(doesWith((*call).toAcquire, (*call).acquired), (*call).notAcquired), (*call).acquireLong)},
	{"renew", "POST", "/v1/renew", "", "RENEW id", doesWith((*call).toRenew, (*call).renewed)},
	{"release", "POST", "/v1/release", "", "RELEASE id+",
		orLonger(doesWith((*call).toRelease, doNothingMore), (*call).releaseMany)},
	{"change", "POST", "/v1/change", "", "CHANGE id", doesWith((*call).toChange, tellLease)},
	{"break", "POST", "/v1/break", "", "BREAK id?", doesWith((*call).toBreak, (*call).broken)},
	{"move", "POST", "/v1/move", "", "MOVE id", doesWith((*call).toMove, (*call).moved)},
	{"ask", "POST", "/v1/ask", "", "ASK resource", doesWith((*call).toAsk, tellAsked)},
	{"acknowledge", "POST", "/v1/acknowledge", "", "ACKNOWLEDGE resource",
		doesWith((*call).toAcknowledge, doNothingMore)},
	{"definitions", "GET", "/v1/definitions", pageParams, "DEFINITION LIST", asks((*call).definitions)},
	{"definition", "GET", "/v1/definitions/{path...}", "", "DEFINITION GET path", asks((*call).definition)},
	{"define", "PUT", "/v1/definitions/{path...}", "", "DEFINITION PUT path",
		doesWith((*call).define, (*call).defined)},
	{"change-definition", "PATCH", "/v1/definitions/{path...}", "", "DEFINITION CHANGE path",
		doesWith((*call).changeDefinition, (*call).defined)},
	{"undefine", "DELETE", "/v1/definitions/{path...}", "by reason", "DEFINITION DEL path",
		does((*call).toUndefine, doNothingMore)},
	{"pools", "GET", "/v1/pools", pageParams, "POOL LIST", asks((*call).pools)},
	{"pool", "GET", "/v1/pools/{path...}", "after limit queue", "POOL GET path", asks((*call).pool)},
	{"set-units", "PUT", "/v1/pools/{path...}", "", "POOL UNITS path",
		doesWith(translated(translate.Command.SetUnits), doNothingMore)},
	{"drain", "PATCH", "/v1/pools/{path...}", "", "POOL DRAIN path",
		doesWith(translated(translate.Command.Drain), doNothingMore)},
	{"report-use", "POST", "/v1/pools/{path...}", "", "POOL USE path",
		doesWith(translated(translate.Command.ReportUse), doNothingMore)},
	{"tasks", "GET", "/v1/tasks", pageParams + " state", "TASK LIST", asks((*call).tasks)},
	{"task", "GET", "/v1/tasks/{path...}", "", "TASK GET path", asks((*call).task)},
	{"put-task", "PUT", "/v1/tasks/{path...}", "", "TASK PUT path",
		doesWith(translated(translate.Command.PutTask), doNothingMore)},
	{"finish-task", "POST", "/v1/finish", "", "FINISH id",
		doesWith(translated(translate.Command.FinishTask), doNothingMore)},
	{"reserve", "POST", "/v1/reservations", "", "RESERVE resource", sends((*call).reserve)},
	{"reservations", "GET", "/v1/reservations", reservationParams + " after limit", "RESERVATION LIST",
		asks((*call).reservations)},
	{"reservation", "GET", "/v1/reservations/{id}", "", "RESERVATION GET id", asks((*call).reservation)},
	{"cancel-reservation", "DELETE", "/v1/reservations/{id}", "by reason", "RESERVATION CANCEL id",
		does((*call).cancelReservation, doNothingMore)},
	{"series", "GET", "/v1/series", pageParams, "RESERVATION SERIES", asks((*call).series)},
	{"calendar", "GET", "/v1/calendar", reservationParams, "", asks((*call).calendar)},
	{"report", "GET", "/v1/reports/{path...}", "from until by", "REPORT path", asks((*call).report)},
	{"open-session", "POST", "/v1/sessions", "", "SESSION OPEN",
		mayDoWith((*call).toOpenSession, (*call).sessionOpened)},
	{"renew-session", "POST", "/v1/sessions/{id}/renew", "seen", "SESSION RENEW id",
		mayDoWith((*call).toRenewSession, (*call).sessionRenewed)},
	{"sessions", "GET", "/v1/sessions", pageParams, "SESSION LIST", asks((*call).sessions)},
	{"session", "GET", "/v1/sessions/{id}", "", "SESSION GET id", asks((*call).session)},
	{"close-session", "DELETE", "/v1/sessions/{id}", "abandon", "SESSION CLOSE id",
		does((*call).toCloseSession, doNothingMore)},
	{"resources", "GET", "/v1/resources", pageParams + " all " + filter.Params, "LIST", asks((*call).resources)},
	{"resource", "GET", "/v1/resources/{path...}", "queue", "GET path", asks((*call).resource)},
	{"advice", "GET", "/v1/advice/{path...}", "", "ADVICE path", asks((*call).advice)},
	{"kinds", "GET", "/v1/kinds/{path...}", "kind command holder", "KINDS path", asks((*call).kinds)},
	{"alarms", "GET", "/v1/alarms", "prefix kind after limit", "ALARM LIST", asks((*call).alarms)},
	{"acknowledge-alarm", "POST", "/v1/alarms/acknowledge", "", "ALARM ACKNOWLEDGE",
		doesWith((*call).acknowledgeAlarm, doNothingMore)},
	{"history", "GET", "/v1/history", "resource before limit", "HISTORY", asks((*call).history)},
	{"audit", "GET", "/v1/audit", "actor verb " + journalParams, "AUDIT", asks((*call).audit)},
	{"holds", "GET", "/v1/holds", journalParams, "HOLDS", asks((*call).holds)},
	{"watch", "GET", "/v1/watch", "prefix resource session interventions since values previous", "WATCH",
		asks((*call).watch)},
	{"records", "GET", "/v1/records", "prefix from to after limit keys count revision", "RECORD LIST",
		asks((*call).records)},
	{"delete-records", "DELETE", "/v1/records", "prefix from to", "RECORD DELRANGE",
		whenFailed(does((*call).toDeleteRecords, (*call).recordsDeleted), unexpected)},
	{"record", "GET", "/v1/records/{path...}", "revision version", "RECORD GET path", asks((*call).record)},
	{"put-record", "PUT", "/v1/records/{path...}", "session keep version", "RECORD PUT path value",
		whenFailed(does((*call).toPutRecord, (*call).recordPut), unexpected)},
	{"delete-record", "DELETE", "/v1/records/{path...}", "", "RECORD DEL path",
		whenFailed(does((*call).toDeleteRecord, (*call).recordsDeleted), unexpected)},
	{"versions", "GET", "/v1/versions/{path...}", "after limit", "RECORD VERSIONS path", asks((*call).versions)},
	{"raise-tokens", "POST", "/v1/tokens/raise", "", "RAISETOKENS above", sends((*call).raiseTokens)},
	{"txn", "POST", "/v1/txn", "", "TXN *", doesUpTo(v1.MaxTxnBody, (*call).toTxn, (*call).txn)},
	{"namespaces", "GET", "/v1/namespaces", pageParams, "NAMESPACES", asks((*call).namespaces)},
	{"cluster", "GET", "/v1/cluster", "", "CLUSTER GET", asks((*call).cluster)},
	{"add-server", "POST", "/v1/cluster/members", "", "CLUSTER ADD name peer", sends((*call).addServer)},
	{"upgrade-cluster", "POST", "/v1/cluster/upgrade", "", "CLUSTER UPGRADE", asks((*call).upgradeCluster)},
	{"promote-server", "POST", "/v1/cluster/members/{name}/promote", "", "CLUSTER PROMOTE name",
		asks((*call).promoteServer)},
	{"remove-server", "DELETE", "/v1/cluster/members/{name}", "", "CLUSTER REMOVE name", asks((*call).removeServer)},
	{"transfer-lead", "POST", "/v1/cluster/transfer", "", "CLUSTER TRANSFER", maySend((*call).transferLead)},
	{"limits", "GET", "/v1/cluster/limits", "", "CLUSTER LIMITS", asks((*call).limits)},
	{"set-limits", "POST", "/v1/cluster/limits", "", "CLUSTER SETLIMITS", sends((*call).setLimits)},
	{"quarantine", "GET", "/v1/cluster/quarantine", "", "CLUSTER QUARANTINE", asks((*call).quarantine)},
	{"end-quarantine", "POST", "/v1/cluster/quarantine/end", "", "CLUSTER ENDQUARANTINE",
		sends((*call).endQuarantine)},
	{"check-cluster", "GET", "/v1/cluster/check", "", "CLUSTER CHECK", asks((*call).checkCluster)},
	{"doors", "GET", "/v1/cluster/doors", "", "CLUSTER DOORS", asks((*call).doors)},
	{"connect", "GET", "/v1/connect", "origin", "CONNECT", asks((*call).connect)},
	{"backup", "GET", "/v1/cluster/backup", "", "", asks((*call).backup)},
	{"access", "GET", "/v1/access", "", "ACCESS GET", asks((*call).access)},
	{"apply-access", "POST", "/v1/access/apply", "", "ACCESS APPLY access",
		sendsUpTo(maxAccess, (*call).applyAccess)},
	{"can-i", "GET", "/v1/access/can-i", "verb path id as group+", "ACCESS CANI verb", asks((*call).canI)},
	{"who-can", "GET", "/v1/access/who-can", "verb path", "ACCESS WHOCAN verb", asks((*call).whoCan)},
	{"whoami", "GET", "/v1/access/whoami", "", "ACCESS WHOAMI", asks((*call).whoami)},
	{"create-token", "POST", "/v1/access/tokens", "", "TOKEN CREATE principal", sends((*call).createToken)},
	{"tokens", "GET", "/v1/access/tokens", pageParams, "TOKEN LIST", listItems(&document.Tokens)},
	{"revoke-token", "DELETE", "/v1/access/tokens/{name...}", "by reason", "TOKEN REVOKE name",
		deleteItem(&document.Tokens)},
	{"roles", "GET", "/v1/access/roles", pageParams, "ROLE LIST", listItems(&document.Roles)},
	{"put-role", "PUT", "/v1/access/roles/{name...}", "by reason", "ROLE PUT name", putItem(&document.Roles)},
	{"delete-role", "DELETE", "/v1/access/roles/{name...}", "by reason", "ROLE DEL name",
		deleteItem(&document.Roles)},
	{"bindings", "GET", "/v1/access/bindings", pageParams, "BINDING LIST", listItems(&document.Bindings)},
	{"put-binding", "PUT", "/v1/access/bindings/{name...}", "by reason", "BINDING PUT name",
		putItem(&document.Bindings)},
	{"delete-binding", "DELETE", "/v1/access/bindings/{name...}", "by reason", "BINDING DEL name",
		deleteItem(&document.Bindings)},
	{"quotas", "GET", "/v1/access/quotas", pageParams, "QUOTA LIST", listItems(&document.Quotas)},
	{"put-quota", "PUT", "/v1/access/quotas/{name...}", "by reason", "QUOTA PUT name", putItem(&document.Quotas)},
	{"delete-quota", "DELETE", "/v1/access/quotas/{name...}", "by reason", "QUOTA DEL name",
		deleteItem(&document.Quotas)},
	{"issuers", "GET", "/v1/access/issuers", pageParams, "ISSUER LIST", listItems(&document.Issuers)},
	{"put-issuer", "PUT", "/v1/access/issuers/{name...}", "by reason", "ISSUER PUT name", putItem(&document.Issuers)},
	{"delete-issuer", "DELETE", "/v1/access/issuers/{name...}", "by reason", "ISSUER DEL name",
		deleteItem(&document.Issuers)},
	{"certificates", "GET", "/v1/access/certificates", pageParams, "CERTIFICATE LIST",
		listItems(&document.Certificates)},
	{"put-certificate", "PUT", "/v1/access/certificates/{name...}", "by reason", "CERTIFICATE PUT name",
		putItem(&document.Certificates)},
	{"delete-certificate", "DELETE", "/v1/access/certificates/{name...}", "by reason", "CERTIFICATE DEL name",
		deleteItem(&document.Certificates)},
}

// The parameters of queries that are true by their names alone.
var bareParams = []string{"all", "keys", "count", "values", "previous", "interventions", "oldest", "abandon"}

// heads are the keywords of RESP for the headers of requests on records.
var heads = []keyword.Head{
	{Name: "if_revision", Header: "If-Match"}, {Name: "lease", Header: v1.LeaseHeader},
	{Name: "token", Header: v1.TokenHeader}, {Name: "if_absent", Header: "If-None-Match", Bare: true},
}

// grammar says what the words of the operation's command in RESP mean.
func (o *operation) grammar() *keyword.Grammar {
	s := keyword.Spec{Command: "LH." + o.resp, Path: o.path, Params: o.known(), Bare: bareParams, Body: o.body}
	switch o.name {
	case "put-record":
		s.Heads = heads
	case "delete-record", "delete-records":
		s.Heads = heads[:3]
	case "acquire":
		s.Names = []string{"push"}
	case "watch":
		s.Names = []string{"tag"}
	}
	if o.method != "GET" {
		s.Names = append(s.Names, "key", "key_session")
	}
	return keyword.New(s)
}
