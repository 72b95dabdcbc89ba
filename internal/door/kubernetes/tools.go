package kubernetes

import "github.com/leasehold/leasehold/internal/door"

var tools = []door.Tool{
	{ID: "kubectl", Name: "kubectl and client-go",
		What: "Leases of Kubernetes (coordination.k8s.io/v1): elections of client-go, informers and kubectl.",
		Text: func(p door.Place) string {
			return door.Lines("leasehold kubernetes config --server "+p.Origin+door.If(p.Access,
				" --token-file /path/to/token")+" > leasehold.kubeconfig",
				"kubectl --kubeconfig leasehold.kubeconfig get leases -A")
		}},
	{ID: "controller-runtime", Name: "controller-runtime",
		What: "An operator whose election, and nothing else, is kept here.",
		Text: func(p door.Place) string {
			return door.Lines("ctrl.NewManager(config, ctrl.Options{",
				"    LeaderElection: true, LeaderElectionID: \"my-operator\", LeaderElectionNamespace: \"apps\",",
				"    LeaderElectionConfig: &rest.Config{Host: \""+p.Origin+"\""+
					door.If(p.Access, ", BearerTokenFile: \"/path/to/token\"")+"},", "})")
		}},
}
