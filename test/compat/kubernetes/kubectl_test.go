package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// A terminal is where kubectl is typed.
type terminal struct {
	t      testing.TB
	config string
	dir    string
}

func newTerminal(t testing.TB, c *rest.Config) *terminal {
	t.Helper()
	dir := t.TempDir()
	k := &terminal{t, filepath.Join(dir, "config"), dir}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]
current-context: x
`, c.Host, c.CAFile, c.BearerToken)
	if err := os.WriteFile(k.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// A fatal is what kubectl would have ended with.
type fatal struct{ message string }

// try runs kubectl, and returns what it prints and why it failed. It reads the input as the file that is called -.
func (k *terminal) try(input string, args ...string) (out, failure string) {
	var said bytes.Buffer
	file := filepath.Join(k.dir, "input.yaml")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		k.t.Fatal(err)
	}
	for i := range args {
		if args[i] == "-" {
			args[i] = file // kubectl would read the standard input of this process
		}
	}
	cmdutil.BehaviorOnFatal(func(message string, _ int) { panic(fatal{message}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		out = said.String()
		if r := recover(); r != nil {
			f, ok := r.(fatal)
			if !ok {
				panic(r)
			}
			failure = f.message
		}
	}()
	flags := genericclioptions.NewConfigFlags(true)
	root := kubectl.NewKubectlCommand(kubectl.KubectlOptions{
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: &said, ErrOut: &said},
		ConfigFlags: flags, Arguments: append([]string{"kubectl"}, args...),
	})
	root.SetArgs(append(args, "--kubeconfig", k.config, "--cache-dir", filepath.Join(k.dir, "cache")))
	root.SetOut(&said)
	root.SetErr(&said)
	if err := root.Execute(); err != nil {
		return said.String(), err.Error()
	}
	return said.String(), ""
}

// run runs kubectl, which has to succeed and to print some texts.
func (k *terminal) run(input string, line string, texts ...string) string {
	k.t.Helper()
	out, failure := k.try(input, strings.Fields(line)...)
	if failure != "" {
		k.t.Fatalf("kubectl %s: %s\n%s", line, failure, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			k.t.Errorf("kubectl %s does not print %q:\n%s", line, text, out)
		}
	}
	return out
}

const manifest = `apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: op
  labels: {app: demo}
spec:
  holderIdentity: ann
  leaseDurationSeconds: 3600
`

func TestKubectl(t *testing.T) {
	s := startServer(t)
	k := newTerminal(t, s.config())
	typeEverything(t, k)
	if _, failure := k.try("", "get", "pods"); !strings.Contains(failure, `the server doesn't have a resource type "pods"`) {
		t.Errorf("get pods fails with %q", failure)
	}
}

// typeEverything types what people type about Leases.
func typeEverything(t *testing.T, k *terminal) {
	k.run("", "api-resources", "leases", "coordination.k8s.io/v1", "Lease")
	k.run("", "api-versions", "coordination.k8s.io/v1")
	k.run("", "explain lease.spec.holderIdentity", "FIELD: holderIdentity <string>")
	k.run("", "get leases", "No resources found in team namespace.")
	k.run(manifest, "create -f -", "lease.coordination.k8s.io/op created")
	if _, failure := k.try(manifest, "create", "-f", "-"); !strings.Contains(failure, `leases.coordination.k8s.io "op" already exists`) {
		t.Errorf("a second create fails with %q", failure)
	}
	out := k.run("", "get lease op")
	if f := strings.Fields(out); len(f) != 6 || strings.Join(f[:5], " ") != "NAME HOLDER AGE op ann" {
		t.Errorf("get prints\n%s", out)
	}
	k.run("", "get leases -A", "NAMESPACE", "team", "op", "ann")
	k.run("", "get leases -A -l app=demo -o name", "lease.coordination.k8s.io/op")
	k.run("", "get leases -l app!=demo -o name")
	k.run("", "get lease op -o yaml", "holderIdentity: ann", "leaseDurationSeconds: 3600", "resourceVersion:")
	k.run("", "describe lease op", "Name:", "op", "Holder Identity:", "ann", "Events:")
	k.run("", "label lease op tier=a", "labeled")
	k.run("", "annotate lease op note=hello", "annotated")
	k.run("", "patch lease op --type=merge -p {\"spec\":{\"leaseTransitions\":4}}", "patched")
	k.run("", "patch lease op --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/leaseTransitions\",\"value\":5}]", "patched")
	k.run("", "patch lease op -p {\"spec\":{\"leaseTransitions\":6}}", "patched")
	k.run("", "get lease op -o jsonpath={.metadata.labels.tier}{.metadata.annotations.note}{.spec.leaseTransitions}", "ahello6")
	if _, failure := k.try(strings.Replace(manifest, "holderIdentity", "holder", 1), "create", "-f", "-"); !strings.Contains(failure,
		`unknown field "spec.holder"`) {
		t.Errorf("an unknown field fails with %q", failure)
	}
	// Applied by the client, and then by the server.
	k.run(strings.Replace(manifest, "name: op", "name: applied", 1), "apply -f -", "lease.coordination.k8s.io/applied created")
	k.run(strings.Replace(manifest, "name: op", "name: applied", 1), "apply -f -", "lease.coordination.k8s.io/applied unchanged")
	other := strings.NewReplacer("name: op", "name: applied", "ann", "bob").Replace(manifest)
	k.run(other, "apply -f -", "lease.coordination.k8s.io/applied configured")
	k.run("", "get lease applied -o jsonpath={.spec.holderIdentity}", "bob")
	served := strings.Replace(manifest, "name: op", "name: served", 1)
	k.run(served, "apply --server-side -f -", "lease.coordination.k8s.io/served serverside-applied")
	k.run(strings.Replace(served, "ann", "bob", 1), "apply --server-side -f -", "serverside-applied")
	k.run("", "get lease served -o jsonpath={.spec.holderIdentity}", "bob")
	k.run(manifest, "replace -f -", "lease.coordination.k8s.io/op replaced")
	k.run(manifest, "diff -f - --server-side=false")
	k.run("", "wait lease/op --for=jsonpath={.spec.holderIdentity}=ann --timeout=10s", "condition met")
	k.edit("lease/op", "s/holderIdentity: ann/holderIdentity: eve/")
	k.run("", "get lease op -o jsonpath={.spec.holderIdentity}", "eve")
	k.run("", "delete lease op", `lease.coordination.k8s.io "op" deleted`)
	if _, failure := k.try("", "get", "lease", "op"); !strings.Contains(failure, "(NotFound)") {
		t.Errorf("get after delete fails with %q", failure)
	}
	k.run("", "delete leases --all", `"applied" deleted`, `"served" deleted`)
	k.run("", "get leases", "No resources found in team namespace.")
}

// edit edits an object with sed.
func (k *terminal) edit(what, script string) {
	k.t.Helper()
	editor := filepath.Join(k.dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i '"+script+"' \"$1\"\n"), 0o700); err != nil {
		k.t.Fatal(err)
	}
	k.t.(*testing.T).Setenv("KUBE_EDITOR", editor)
	k.run("", "edit "+what, "edited")
}
