package run

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTerraformCalls(t *testing.T) {
	for line, want := range map[string]struct {
		dir   string
		locks bool
	}{
		"terraform apply":                        {".", true},
		"/usr/bin/terraform -chdir=infra plan":   {"infra", true},
		"tofu --chdir=infra apply -auto-approve": {"infra", true},
		"terraform plan -chdir=late":             {".", true},
		"terraform state rm a.b":                 {".", true},
		"terraform state list":                   {".", false},
		"terraform state":                        {".", false},
		"terraform output -json":                 {".", false},
		"terraform init":                         {".", true},
		"terraform init -backend=false":          {".", false},
		"terraform apply -help":                  {".", false},
		"terraform":                              {".", false},
		"terraform -version":                     {".", false},
	} {
		call, ok := terraformCallOf(strings.Fields(line))
		if !ok || call.dir != want.dir || call.locks() != want.locks {
			t.Errorf("%s: %+v, %v, locks %v", line, call, ok, call.locks())
		}
	}
	if _, ok := terraformCallOf([]string{"make", "plan"}); ok {
		t.Error("make is taken for terraform")
	}
}

func TestBackendsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		`terraform { backend "http" {} }`: "http",
		"terraform {\n  backend \"http\" {\n    address = \"http://a\"\n    lock_address=\"http://b\"\n  }\n}":  "http address=http://a lock_address=http://b",
		"# terraform { backend \"s3\" {} }\nterraform {\n  required_version = \">= 1\"\n  backend http {}\n}":   "http",
		"// x\n/* terraform { backend \"s3\" {} } */ terraform { backend \"gcs\" { bucket = \"b\" } }":          "gcs bucket=b",
		"resource \"x\" \"terraform\" { backend \"s3\" {} }":                                                    "",
		"locals { a = \"terraform { backend \\\"s3\\\" {} }\" }":                                                "",
		"locals {\n a = <<-EOT\n  terraform { backend \"s3\" {} }\n  EOT\n}\nterraform { backend \"http\" {} }": "http",
		"locals { a = \"${ \"}\" }\" }\nterraform { backend \"http\" {} }":                                      "http",
		"terraform { cloud { organization = \"o\" } }":                                                          "cloud",
		"terraform {\n backend \"http\" {\n lock_address = var.x\n retry_max = 2\n update_method = null\n }\n}": "http lock_address=(an expression) retry_max=(an expression)",
		"terraform {\n required_providers { a = { source = \"b/c\" } }\n backend \"http\" {}\n}":                "http",
	} {
		kind, set := backendIn(text)
		for _, name := range []string{"address", "bucket", "lock_address", "retry_max", "update_method"} {
			if value, ok := set[name]; ok {
				kind += " " + name + "=" + value
			}
		}
		if kind != want {
			t.Errorf("%s: %q, want %q", text, kind, want)
		}
	}
	for text, want := range map[string]string{
		`{"terraform": {"backend": {"http": {"lock_address": "http://b"}}}}`:       "http",
		`{"terraform": [{"backend": [{"http": [{"lock_address": "http://b"}]}]}]}`: "http",
		`{"terraform": {"cloud": {}}}`:                                             "cloud",
		`{"terraform": 1}`:                                                         "",
		`nonsense`:                                                                 "",
	} {
		kind, set := backendInJSON([]byte(text))
		if kind != want || want == "http" && !maps.Equal(set, map[string]string{"lock_address": "http://b"}) {
			t.Errorf("%s: %q, %v", text, kind, set)
		}
	}
}

// write makes files below a directory of the test.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	emptyBlock = "terraform {\n  backend \"http\" {}\n}"
	fullBlock  = "terraform {\n  backend \"http\" {\n    address = \"http://h:1/terraform/prod/s\"\n    lock_address = \"http://h:1/terraform/prod/s\"\n  }\n}\n"
	savedEmpty = `{"version":3,"backend":{"type":"http","config":{"address":null,"lock_address":null}}}`
	savedFull  = `{"version":3,"backend":{"type":"http","config":{"address":"http://h:1/terraform/prod/s","lock_address":"http://h:1/terraform/prod/s"}}}`
)

// A user saw: a backend block from "terraform config" beside run --terraform, and an ordinary lock
// that stayed for ever when the runner was killed.
func TestWhatCannotBeKeptIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		args  string
		env   string
		want  string // in what contradicts says; empty: nothing does
	}{
		"a full block, saved":           {map[string]string{"b.tf": fullBlock, ".terraform/terraform.tfstate": savedFull}, "apply", "", "sets lock_address"},
		"an empty block, saved":         {map[string]string{"b.tf": emptyBlock, ".terraform/terraform.tfstate": savedEmpty}, "apply", "", ""},
		"what is saved counts":          {map[string]string{"b.tf": emptyBlock, ".terraform/terraform.tfstate": savedFull}, "plan", "", "sets lock_address"},
		"but not for init":              {map[string]string{"b.tf": emptyBlock, ".terraform/terraform.tfstate": savedFull}, "init -reconfigure", "", ""},
		"a full block, for init":        {map[string]string{"b.tf": fullBlock}, "init", "", "b.tf sets lock_address"},
		"not initialized":               {map[string]string{"b.tf": fullBlock}, "apply", "", ""},
		"no block at all":               {map[string]string{"a.tf": "resource \"x\" \"y\" {}"}, "apply", "", "no backend block"},
		"no block, for init":            {map[string]string{"a.tf": ""}, "init", "", "no backend block"},
		"another backend":               {map[string]string{".terraform/terraform.tfstate": `{"backend":{"type":"azurerm","config":{}}}`}, "apply", "", `backend "azurerm"`},
		"another data directory":        {map[string]string{"b.tf": emptyBlock, "d/terraform.tfstate": savedFull}, "apply", "d", "sets lock_address"},
		"an override":                   {map[string]string{"b.tf": emptyBlock, "b_override.tf": fullBlock, "c.tf": ""}, "init", "", "b_override.tf sets lock_address"},
		"a backend-config":              {map[string]string{"b.tf": emptyBlock}, "init -backend-config=lock_address=http://x", "", "-backend-config sets lock_address"},
		"a backend-config behind":       {map[string]string{"b.tf": emptyBlock}, "init -backend-config lock_address=http://x", "", "-backend-config sets lock_address"},
		"a file of them":                {map[string]string{"b.tf": emptyBlock, "x.hcl": "lock_address = \"http://x\""}, "init -backend-config=x.hcl", "", "x.hcl sets lock_address"},
		"another state":                 {map[string]string{"b.tf": "terraform {\nbackend \"http\" {\naddress = \"http://h:1/terraform/prod/other\"\n}\n}"}, "init", "", "which is not the state prod/s"},
		"the same state at a proxy":     {map[string]string{"b.tf": "terraform {\nbackend \"http\" {\naddress = \"https://proxy/leases/terraform/prod/s?namespace=a\"\n}\n}"}, "init", "", ""},
		"as GitLab calls it":            {map[string]string{"b.tf": "terraform {\nbackend \"http\" {\naddress = \"https://h/api/v4/projects/prod/terraform/state/s\"\n}\n}"}, "init", "", ""},
		"an expression":                 {map[string]string{"b.tf": "terraform {\nbackend \"http\" {\naddress = var.address\n}\n}"}, "init", "", ""},
		"a saved file that is nonsense": {map[string]string{".terraform/terraform.tfstate": "nonsense"}, "apply", "", ""},
		"no configuration for output":   {nil, "output", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, c.files)
			call, _ := terraformCallOf(append([]string{"terraform", "-chdir=" + dir}, strings.Fields(c.args)...))
			if !call.locks() {
				return
			}
			b, known, _ := call.backendOf(func(string) string { return c.env })
			got := ""
			if known {
				got = b.contradicts("prod/s")
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzBackendIn(f *testing.F) {
	for _, text := range []string{emptyBlock, fullBlock, "a = <<EOT\nx\nEOT\n", `"${"}`, "/*", "<<", "}{", `terraform {backend "a\"b" {x="y"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A comment behind a block, and a block behind a newline, change nothing.
		kind, _ := backendIn(emptyBlock + "\n#" + strings.ReplaceAll(text, "\n", " "))
		if kind != "http" {
			t.Errorf("a comment hides the block: %q", kind)
		}
		backendIn(text)
		attributesIn(text)
		backendInJSON([]byte(text))
	})
}
