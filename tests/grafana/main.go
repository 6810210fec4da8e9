// Reads dashboards from files and checks them against the types that Grafana publishes: no unknown field, no missing
// one, no wrong value.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	_ "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

func main() {
	for _, name := range os.Args[1:] {
		if why := check(name); why != "" {
			fmt.Fprintf(os.Stderr, "%s: %s\n", name, why)
			os.Exit(1)
		}
	}
}

// Returns what is wrong with a dashboard. The errors of the SDK may be empty, and are never nil.
func check(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	var page dashboard.Dashboard
	if why := text(page.UnmarshalJSONStrict(content)); why != "" {
		return why
	}
	return text(page.Validate())
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
