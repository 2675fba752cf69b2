// Renders a Helm chart as `helm template` does, with the libraries that Helm itself is made of: Go's text/template and sprig.
// Reads {"folder", "release", "namespace", "values", "strict"} from standard input, where `values` already has the defaults of
// values.yaml, and writes the rendered text of each template by its name. A template's refusal goes to standard error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type order struct {
	Folder    string
	Release   string
	Namespace string
	Values    map[string]interface{}
}

type files struct{ folder string }

func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	return string(text), err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var given order
	check(json.NewDecoder(os.Stdin).Decode(&given))
	var chart map[string]interface{}
	text, err := os.ReadFile(filepath.Join(given.Folder, "Chart.yaml"))
	check(err)
	check(yaml.Unmarshal(text, &chart))

	// Stricter than Helm: a member that values.yaml lacks is an error, and no empty text.
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["fail"] = func(why string) (string, error) { return "", errors.New(why) }
	functions["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(why)
		}
		return value, nil
	}
	all.Funcs(functions)

	names, err := filepath.Glob(filepath.Join(given.Folder, "templates", "*"))
	check(err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		check(err)
		_, err = all.New(filepath.Base(name)).Parse(string(text))
		check(err)
	}
	data := map[string]interface{}{
		"Values":  given.Values,
		"Release": map[string]interface{}{"Name": given.Release, "Namespace": given.Namespace, "Service": "Helm"},
		"Chart": map[string]interface{}{
			"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"],
		},
		"Files": files{given.Folder},
	}
	rendered := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		var out strings.Builder
		check(all.ExecuteTemplate(&out, filepath.Base(name), data))
		rendered[filepath.Base(name)] = out.String()
	}
	check(json.NewEncoder(os.Stdout).Encode(rendered))
}
