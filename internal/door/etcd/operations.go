package etcd

// An operation is one call of the protocol.
type operation struct {
	name   string // in metrics
	method string // as gRPC names it
	noted  string // as the journal calls it, in the words of all doors
	writes bool
	stays  bool // it is a stream, or waits: its length means nothing

	// instead says what to do, if the door has no such call. A call that is left out is refused before anybody looks
	// at it.
	instead string
}

const (
	kv          = "/etcdserverpb.KV/"
	watch       = "/etcdserverpb.Watch/"
	lease       = "/etcdserverpb.Lease/"
	cluster     = "/etcdserverpb.Cluster/"
	maintenance = "/etcdserverpb.Maintenance/"
	auth        = "/etcdserverpb.Auth/"
	lock        = "/v3lockpb.Lock/"
	election    = "/v3electionpb.Election/"
	health      = "/grpc.health.v1.Health/"
)

const (
	byMembers = "the servers of a cluster are changed with leasehold cluster"
	byBackup  = "use leasehold backup, which has everything that is in the cluster"
	byAccess  = "who may do what is set with leasehold access, for all doors at once"
	byItself  = "there is nothing to do: space is given back without it"
)

// operations is the whole door.
var operations = []operation{
	{name: "range", method: kv + "Range", noted: "records"},
	{name: "range-stream", method: kv + "RangeStream", instead: "ask by Range, with a limit"},
	{name: "put", method: kv + "Put", noted: "put-record", writes: true},
	{name: "delete-range", method: kv + "DeleteRange", noted: "delete-record", writes: true},
	{name: "txn", method: kv + "Txn", noted: "txn", writes: true},
	{name: "compact", method: kv + "Compact", noted: "put-record", writes: true},

	{name: "watch", method: watch + "Watch", noted: "watch", stays: true},

	{name: "grant", method: lease + "LeaseGrant", noted: "open-session", writes: true},
	{name: "revoke", method: lease + "LeaseRevoke", noted: "close-session", writes: true},
	{name: "keep-alive", method: lease + "LeaseKeepAlive", noted: "renew-session", stays: true},
	{name: "time-to-live", method: lease + "LeaseTimeToLive", noted: "session"},
	{name: "leases", method: lease + "LeaseLeases", noted: "sessions"},

	{name: "lock", method: lock + "Lock", noted: "acquire", writes: true, stays: true},
	{name: "unlock", method: lock + "Unlock", noted: "release", writes: true},

	{name: "campaign", method: election + "Campaign", noted: "acquire", writes: true, stays: true},
	{name: "proclaim", method: election + "Proclaim", noted: "put-record", writes: true},
	{name: "leader", method: election + "Leader", noted: "records"},
	{name: "observe", method: election + "Observe", noted: "watch", stays: true},
	{name: "resign", method: election + "Resign", noted: "release", writes: true},

	{name: "member-list", method: cluster + "MemberList", noted: "cluster"},
	{name: "member-add", method: cluster + "MemberAdd", instead: byMembers},
	{name: "member-remove", method: cluster + "MemberRemove", instead: byMembers},
	{name: "member-update", method: cluster + "MemberUpdate", instead: byMembers},
	{name: "member-promote", method: cluster + "MemberPromote", instead: byMembers},

	{name: "alarm", method: maintenance + "Alarm", noted: "alarms"},
	{name: "status", method: maintenance + "Status", noted: "cluster"},
	{name: "defragment", method: maintenance + "Defragment", instead: byItself},
	{name: "hash", method: maintenance + "Hash", instead: "leasehold cluster compares the states of all servers"},
	{name: "hash-kv", method: maintenance + "HashKV", instead: "leasehold cluster compares the states of all servers"},
	{name: "snapshot", method: maintenance + "Snapshot", instead: byBackup},
	{name: "move-leader", method: maintenance + "MoveLeader", instead: byMembers},
	{name: "downgrade", method: maintenance + "Downgrade", instead: byMembers},

	{name: "authenticate", method: auth + "Authenticate", noted: "login"},
	{name: "auth-status", method: auth + "AuthStatus", noted: "login"},
	{name: "auth-enable", method: auth + "AuthEnable", instead: byAccess},
	{name: "auth-disable", method: auth + "AuthDisable", instead: byAccess},
	{name: "user-add", method: auth + "UserAdd", instead: byAccess},
	{name: "user-get", method: auth + "UserGet", instead: byAccess},
	{name: "user-list", method: auth + "UserList", instead: byAccess},
	{name: "user-delete", method: auth + "UserDelete", instead: byAccess},
	{name: "user-change-password", method: auth + "UserChangePassword", instead: byAccess},
	{name: "user-grant-role", method: auth + "UserGrantRole", instead: byAccess},
	{name: "user-revoke-role", method: auth + "UserRevokeRole", instead: byAccess},
	{name: "role-add", method: auth + "RoleAdd", instead: byAccess},
	{name: "role-get", method: auth + "RoleGet", instead: byAccess},
	{name: "role-list", method: auth + "RoleList", instead: byAccess},
	{name: "role-delete", method: auth + "RoleDelete", instead: byAccess},
	{name: "role-grant-permission", method: auth + "RoleGrantPermission", instead: byAccess},
	{name: "role-revoke-permission", method: auth + "RoleRevokePermission", instead: byAccess},

	{name: "health-check", method: health + "Check", noted: "health"},
	{name: "health-list", method: health + "List", instead: "there is one service to ask for: check the empty name"},
	{name: "health-watch", method: health + "Watch", noted: "health", stays: true},
}

// anonymous are the calls that need no credential: by them clients get one, or see that the server is up.
var anonymous = map[string]bool{
	auth + "Authenticate": true, auth + "AuthStatus": true, health + "Check": true, health + "Watch": true,
}
