// Prints what kstatus makes of each object on standard input, which has one JSON text a line: its status and a message.
// Flux waits for the objects that it applies by these statuses, and so does helm.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	objects := json.NewDecoder(os.Stdin)
	for {
		var text json.RawMessage
		err := objects.Decode(&text)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fail(err)
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(text); err != nil {
			fail(err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			fail(err)
		}
		fmt.Printf("%s %s\n", result.Status, result.Message)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
