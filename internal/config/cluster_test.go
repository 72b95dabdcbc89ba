package config

import (
	"reflect"
	"strings"
	"testing"
)

// flags makes a map of "--name value" pairs; a name without a value is a switch.
func flags(line string) map[string]string {
	given := map[string]string{}
	var name string
	for _, word := range strings.Fields(line) {
		if after, ok := strings.CutPrefix(word, "--"); ok {
			name = after
			given[name] = "true"
			continue
		}
		given[name] = word
	}
	return given
}

const (
	trio  = "--initial-cluster n1=127.0.0.1:1,n2=127.0.0.1:2,n3=127.0.0.1:3"
	apart = "--initial-cluster n1=10.0.0.1:1,n2=10.0.0.2:1,n3=10.0.0.3:1"
	certs = "--peer-cert c --peer-key k --peer-ca a"
)

func TestServersOfACluster(t *testing.T) {
	for _, c := range []struct{ flags, listen, advertise string }{
		{"", "", ""},
		{trio + " --insecure", "127.0.0.1:1", "127.0.0.1:1"},
		{trio + " --insecure --name n3", "127.0.0.1:3", "127.0.0.1:3"},
		{trio + " --insecure --peer-listen 127.0.0.1:9", "127.0.0.1:9", "127.0.0.1:1"},
		{apart + " " + certs, "10.0.0.1:1", "10.0.0.1:1"},
		{apart + " " + certs + " --peer-listen 0.0.0.0:1", "0.0.0.0:1", "10.0.0.1:1"},
		{apart + " " + certs + " --peer-advertise 10.0.0.1:1", "10.0.0.1:1", "10.0.0.1:1"},
		{"--join 10.0.0.1:1,10.0.0.2:1 --peer-listen 0.0.0.0:1 --peer-advertise n4.example:1 " + certs, "0.0.0.0:1", "n4.example:1"},
		{"--join 127.0.0.1:1 --peer-listen 127.0.0.1:0 --insecure", "127.0.0.1:0", "127.0.0.1:0"},
		{"--peer-listen [::1]:1 --insecure", "[::1]:1", "[::1]:1"},
	} {
		got, _, err := ForServer(Sources{Flags: flags(c.flags)})
		if err != nil || got.Server.PeerListen != c.listen || got.Server.PeerAdvertise != c.advertise {
			t.Errorf("%s: listens at %q and says %q: %v", c.flags, got.Server.PeerListen, got.Server.PeerAdvertise, err)
		}
	}
	got, _, err := ForServer(Sources{Flags: flags(trio + " --insecure --name n2")})
	want := []Member{{"n1", "127.0.0.1:1"}, {"n2", "127.0.0.1:2"}, {"n3", "127.0.0.1:3"}}
	if err != nil || !reflect.DeepEqual(got.Server.InitialCluster, want) {
		t.Errorf("the list is %v: %v", got.Server.InitialCluster, err)
	}
}

func TestMistakesAboutClusters(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{trio, "servers would talk to each other without certificates: give --insecure if you trust everybody on this machine, or --peer-cert"},
		{apart, "servers reach each other at 10.0.0.1:1, which other machines can reach, too: give --peer-cert, --peer-key and --peer-ca"},
		{apart + " --insecure", "without them all addresses are on 127.0.0.1"},
		{"--peer-listen 127.0.0.1:1 --join 10.0.0.1:1 --insecure", "servers reach each other at 10.0.0.1:1"},
		{trio + " --insecure --join 127.0.0.1:9", "leave one of them out"},
		{trio + " --insecure --name n4", "initial-cluster has n1, n2, n3, and this server is called n4: give --name one of them, or add n4=HOST:PORT"},
		{trio + " --insecure --peer-advertise 127.0.0.1:7", "peer-advertise is 127.0.0.1:7, and initial-cluster has 127.0.0.1:1 for n1"},
		{"--join 127.0.0.1:1 --insecure", "join needs an address at which the others reach this server: give --peer-listen"},
		{"--peer-advertise 127.0.0.1:1 --insecure", "give --peer-listen too"},
		{"--peer-listen 0.0.0.0:1 " + certs, "tell the others which one to use with --peer-advertise HOST:PORT"},
		{"--peer-listen :1 " + certs, "tell the others which one to use with --peer-advertise HOST:PORT"},
		{apart + " --peer-cert c", "peer-cert alone: servers trust each other by all three; give --peer-key and --peer-ca too"},
		{apart + " --peer-cert c --peer-key k", "peer-cert and peer-key alone"},
		{certs, "give --peer-listen or --initial-cluster"},
		{"--initial-cluster n1", `"n1" has no =: write it as n1=10.0.0.1:4654`},
		{"--initial-cluster n1=x", "n1=x: write it as host:port"},
		{"--initial-cluster n1=10.0.0.1:0", "a number from 1 to 65535"},
		{"--initial-cluster n1=0.0.0.0:1", "every address of a machine"},
		{"--initial-cluster n1=10.0.0.1:1,n1=10.0.0.2:1", "n1 is listed twice"},
		{"--initial-cluster n1=10.0.0.1:1,n2=10.0.0.1:1", "n1 and n2 have the same address"},
		{"--initial-cluster n1=10.0.0.1:1,", `"" has no =`},
		{"--initial-cluster -n=10.0.0.1:1", "cannot be a name"},
		{"--join x", "x: write it as host:port"},
		{"--join http://x:1", "write it as host:port"},
		{"--name a/b", "cannot be a name"},
		{"--advertise ftp://x", "write it as http://host:port"},
		{"--peer-advertise 127.0.0.1", "write it as host:port"},
		{"--peer-listen x", "write it as host:port"},
		{"--tls-cert c", "tls-cert needs its key: give --tls-key too"},
		{"--tls-key k", "give --tls-cert too"},
		{"--tls-client-ca a", "give --tls-cert and --tls-key too"},
		{"--access maybe", "use true or false"},
		{"--listen 0.0.0.0:1", "anybody there could read and end every lease: give --tls-cert and --tls-key (leasehold cert makes the files), and --access; or listen on 127.0.0.1; or give --insecure"},
		{"--listen 0.0.0.0:1 --access", "tokens would cross the network in plain: give --tls-cert and --tls-key (leasehold cert makes the files); or"},
		{"--listen 0.0.0.0:1 --tls-cert c --tls-key k", "anybody there could end every lease: give --access; or"},
		{"--listen 0.0.0.0:1 --tls-cert c --tls-key k --tls-client-ca a", "everybody with a certificate could end every lease: give --access; or"},
	} {
		_, _, err := ForServer(Sources{Flags: flags(c.flags)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.flags, err, c.want)
		}
	}
	if _, _, err := ForServer(Sources{Flags: flags("--peer-listen x")}); strings.Contains(err.Error(), "\n") {
		t.Errorf("one mistake is told as several: %v", err)
	}
	for _, good := range []string{
		"", "--access", "--listen 0.0.0.0:1 --tls-cert c --tls-key k --access-file f", "--listen 0.0.0.0:1 --insecure", "--listen 0.0.0.0:1 --tls-cert c --tls-key k --access",
		"--listen 0.0.0.0:1 --tls-cert c --tls-key k --tls-client-ca a --access",
		"--listen 0.0.0.0:1 --tls-cert c --tls-key k --tls-client-ca a --insecure",
	} {
		if _, _, err := ForServer(Sources{Flags: flags(good)}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestServersToTalkTo(t *testing.T) {
	c, _, err := ForClient(Sources{Flags: map[string]string{"server": "a:1, https://b:2/ ,http://c", "ca": "x"}})
	if want := []string{"https://a:1", "https://b:2", "http://c"}; err != nil || !reflect.DeepEqual(c.Client.Servers, want) || c.Client.Server != strings.Join(want, ",") {
		t.Errorf("got %+v, %v", c.Client, err)
	}
	for _, m := range []struct{ flags, want string }{
		{"--server a:1,", "write it as http://host:port"},
		{"--server a:1,http://a:1", "http://a:1 is listed twice"},
		{"--server http://a:1 --ca x", "ca, cert and key are for servers with TLS, and server is http://a:1: write it as https://host:port"},
		{"--server https://a:1 --cert x", "cert and key go together"},
		{"--server mysql://root:hunter2@a", `server is "mysql://root:xxxxx@a": unknown scheme "mysql"`},
		{"--server root:hunter2@a", "leave out the user and password"},
		{"--server http://root:hunter2@a", "leave out the user and password"},
		{"--server http://a:1,http://root:hunter2@b", "leave out the user and password"},
		{"--server redis://:hunter2@a --ca x", "put the certificates of redis://:xxxxx@a into the parameters of its URL"},
	} {
		_, _, err := ForClient(Sources{Flags: flags(m.flags)})
		if err == nil || !strings.Contains(err.Error(), m.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v\nwant %s", m.flags, err, m.want)
		}
	}
}
