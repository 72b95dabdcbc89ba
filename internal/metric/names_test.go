package metric

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNamesAreGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for m := range All() {
		if seen[m.Name] || m.Help == "" || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s is there twice, or has no sentence that says what it is", m.Name)
		}
		if (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s: counters, and only they, end with _total", m.Name, m.Kind)
		}
		seen[m.Name] = true
	}
}

// row is the line of docs/operations.md that a metric must have.
func (m Metric) row() string {
	labels := ""
	if len(m.Labels) > 0 {
		labels = "{" + strings.Join(m.Labels, ",") + "}"
	}
	return fmt.Sprintf("| `%s%s` | %s | %s |\n", m.Name, labels, m.Kind, m.Help)
}

func TestOperationsHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| metric | kind | meaning |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	want := ""
	for m := range All() {
		want += m.row()
	}
	if !ok || table+"\n" != want {
		t.Errorf("the table of metrics in docs/operations.md has to be this:\n%s", want)
	}
}

// What is shipped for Prometheus and Grafana, and every page, names only metrics that exist,
// and only labels that they have.
func TestNothingNamesOtherMetrics(t *testing.T) {
	named := regexp.MustCompile(`\bleasehold_[a-z_]+[a-z](\{[^}]*\})?`)
	label := regexp.MustCompile(`\b([a-z]+)(?:=~|!=|=|,|\})`)
	var files []string
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "*.md", "deploy/*/*"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range named.FindAllString(strings.ReplaceAll(string(text), `\"`, `"`), -1) {
			name, labels, _ := strings.Cut(use, "{")
			i := slices.IndexFunc(list, func(m Metric) bool { return m.has(name) })
			if i < 0 {
				t.Errorf("%s names %s, which no server has", file, name)
				continue
			}
			for _, l := range label.FindAllStringSubmatch(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(labels, ""), -1) {
				if !slices.Contains(list[i].Labels, l[1]) && l[1] != "instance" && l[1] != "job" {
					t.Errorf("%s asks for the label %s of %s, which has %v", file, l[1], name, list[i].Labels)
				}
			}
		}
	}
}

// has reports whether a series of the metric has a name: that of a histogram has several.
func (m Metric) has(name string) bool {
	if m.Kind == Histogram {
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, end)
		}
	}
	return m.Name == name
}
