// Command render prints what `helm template` would, for machines without Helm.
//
//	render CHART [VALUES ...]             all objects
//	render -config CHART [VALUES ...]     the idproxy.yaml of the ConfigMap
//	render -pod N CHART [VALUES ...]      the environment of the n-th pod, without secrets
//
// A file of manifests may stand in place of a chart's folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"idproxy/integration/kubernetes"
)

func main() {
	config := flag.Bool("config", false, "print the idproxy.yaml of the ConfigMap")
	pod := flag.Int("pod", -1, "print the environment of the pod of this number, from 0 on")
	flag.Parse()
	if err := run(*config, *pod, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(config bool, pod int, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name the folder of a chart, or a file of manifests")
	}
	documents, err := kubernetes.Read(args[0], args[1:]...)
	if err != nil {
		return err
	}
	objects, err := kubernetes.Parse(documents)
	if err != nil {
		return err
	}
	switch {
	case config:
		fmt.Print(objects.Config())
	case pod >= 0:
		fmt.Println(strings.Join(objects.Environment(pod), "\n"))
	default:
		fmt.Print("---\n" + strings.Join(documents, "---\n"))
	}
	return nil
}
