package node

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/internal/metric"
)

// metricName finds names of metrics in an expression, and label matchers behind them.
var (
	metricName = regexp.MustCompile(`\b(leasehold|process)_[a-z_]+`)
	matcher    = regexp.MustCompile(`\b(door|verb|code|kind)(=~|=|!=)"([^"]+)"`)
)

// What is shipped for Prometheus and Grafana asks for nothing that a server does not have:
// neither a metric nor a value of a label.
func TestAlertsAndDashboardAskForWhatThereIs(t *testing.T) {
	metrics := scrape(t)
	for file, expressions := range map[string][]string{
		"leasehold.rules.yaml": alertExpressions(t), "leasehold.json": dashboardExpressions(t),
	} {
		if len(expressions) < 10 {
			t.Errorf("%s has %d expressions: they were not found", file, len(expressions))
		}
		for _, e := range expressions {
			for _, name := range metricName.FindAllString(e, -1) {
				if notAlone(name) {
					continue
				}
				if !strings.Contains(metrics, "\n"+name+"{") && !strings.Contains(metrics, "\n"+name+" ") {
					t.Errorf("%s: %s asks for %s, which there is not", file, e, name)
				}
			}
			for _, m := range matcher.FindAllStringSubmatch(e, -1) {
				for value := range strings.SplitSeq(m[3], "|") {
					if !strings.Contains(metrics, m[1]+`="`+value+`"`) {
						t.Errorf("%s: %s asks for %s %q, which there is not", file, e, m[1], value)
					}
				}
			}
		}
	}
}

// notAlone reports whether only a server of a cluster, or one with certificates, has a metric. The
// list knows those too.
func notAlone(name string) bool {
	for m := range metric.All() {
		if m.Name == name {
			return slices.Contains([]string{metric.PeerConnected.Name, metric.PeerLag.Name, metric.CertificateEnds.Name}, name)
		}
	}
	return false
}

// A server has no metric of its own that the list of them does not know, nor with another
// meaning.
func TestMetricsAreThoseOfTheList(t *testing.T) {
	help := map[string]string{}
	for m := range metric.All() {
		help[m.Name] = m.Help
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^# HELP (leasehold_\w+) (.*)$`).FindAllStringSubmatch(scrape(t), -1) {
		found++
		if help[m[1]] != m[2] {
			t.Errorf("a server has %s (%s); internal/metric/names.go says %q", m[1], m[2], help[m[1]])
		}
	}
	if found < 30 {
		t.Errorf("only %d metrics were found", found)
	}
}

func scrape(t *testing.T) string {
	t.Helper()
	server := startServer(t, alone(t))
	defer http.DefaultClient.CloseIdleConnections()
	response, err := http.Get(server + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return "\n" + string(text)
}

func alertExpressions(t *testing.T) (list []string) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile("../../deploy/prometheus/leasehold.rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || slices.Contains(names, r.Alert) {
				t.Errorf("rule %q lacks something, or stands twice", r.Alert)
			}
			names, list = append(names, r.Alert), append(list, r.Expr)
		}
	}
	return list
}

func dashboardExpressions(t *testing.T) (list []string) {
	t.Helper()
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana/leasehold.json")
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	return list
}
