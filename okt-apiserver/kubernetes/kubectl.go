package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	// Ways to log in that a kubeconfig may ask for.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

// kubectl is run as if it had been called by its own name.
func kubectl(arguments []string) error {
	os.Args = append([]string{"kubectl"}, arguments...)
	if err := setVerbosity(os.Args); err != nil {
		return err
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		// Prints it and exits with kubectl's own code.
		util.CheckErr(err)
	}
	return nil
}
