// Command kubernetes is what tests of operators need of a cluster, in one program: the API server
// with its database, the controllers that collect garbage, empty namespaces and migrate stored
// objects, and kubectl.
//
// Nothing in it imitates: all parts are those of the Kubernetes release that go.mod names.
package main

import (
	"fmt"
	"os"
)

const usage = `usage:
  kubernetes server --dir DIR [--feature-gates GATES]
                                        the API server on a free loopback port; DIR is made, holds
                                        the kubeconfig, and is removed at the end. In the DIR of a
                                        server that was killed: that server again, with its data
  kubernetes controllers --kubeconfig FILE
                                        garbage collection, the deletion of namespaces, and the
                                        migration of stored objects, if the server has that gate
  kubernetes kubectl ARGUMENTS...       kubectl

server and controllers end when their standard input is closed, and on SIGINT and SIGTERM.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	command, arguments := os.Args[1], os.Args[2:]
	var err error
	switch command {
	case "server":
		err = serve(arguments)
	case "controllers":
		err = control(arguments)
	case "kubectl":
		err = kubectl(arguments)
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubernetes %s: %v\n", command, err)
		os.Exit(1)
	}
}
