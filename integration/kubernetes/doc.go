// Package kubernetes reads the manifests of examples/kubernetes, and renders its chart with Helm's
// own engine.
package kubernetes
