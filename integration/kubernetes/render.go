package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Render returns the documents of a chart's templates, as `helm template idproxy` with files of
// values does. Later files win.
func Render(c *chart.Chart, valueFiles ...string) ([]string, error) {
	values := map[string]any{}
	for _, path := range valueFiles {
		more, err := chartutil.ReadValuesFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		values = chartutil.CoalesceTables(more, values)
	}
	options := chartutil.ReleaseOptions{Name: "idproxy", Namespace: "shop", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		documents = append(documents, split(rendered[name])...)
	}
	return documents, nil
}

// Read returns the documents of a chart's folder with files of values, or of a file of manifests.
func Read(path string, valueFiles ...string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err != nil {
		text, err := os.ReadFile(path)
		return split(string(text)), err
	}
	c, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	return Render(c, valueFiles...)
}

func split(text string) (documents []string) {
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		if document = strings.TrimSpace(document); document != "" {
			documents = append(documents, document+"\n")
		}
	}
	return documents
}
