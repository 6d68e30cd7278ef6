package kubernetes

import (
	"errors"
	"fmt"
	"strconv"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Objects are what documents describe.
type Objects struct {
	ConfigMaps   []core.ConfigMap
	Services     []core.Service
	StatefulSets []apps.StatefulSet
	Deployments  []apps.Deployment
	Budgets      []policy.PodDisruptionBudget
	Jobs         []batch.Job
}

// Parse reads documents into the types of Kubernetes. A key that a type does not have is an error.
func Parse(documents []string) (*Objects, error) {
	o := &Objects{}
	for _, document := range documents {
		var is struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			return nil, err
		}
		var err error
		switch is.APIVersion + " " + is.Kind {
		case "v1 ConfigMap":
			err = appendTo(&o.ConfigMaps, document)
		case "v1 Service":
			err = appendTo(&o.Services, document)
		case "apps/v1 StatefulSet":
			err = appendTo(&o.StatefulSets, document)
		case "apps/v1 Deployment":
			err = appendTo(&o.Deployments, document)
		case "batch/v1 Job":
			err = appendTo(&o.Jobs, document)
		case "policy/v1 PodDisruptionBudget":
			err = appendTo(&o.Budgets, document)
		default:
			err = errors.New("not one of the kinds that are looked at")
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", is.APIVersion, is.Kind, err)
		}
	}
	return o, nil
}

// appendTo reads as the API server does that is asked to be strict: a key in other letters, or one
// that is there twice, is an error too.
func appendTo[T any](all *[]T, document string) error {
	text, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return err
	}
	var one T
	unknown, err := json.UnmarshalStrict(text, &one)
	*all = append(*all, one)
	return errors.Join(append(unknown, err)...)
}

// Config is the idproxy.yaml of the first ConfigMap that has one.
func (o *Objects) Config() string {
	for _, c := range o.ConfigMaps {
		if text := c.Data["idproxy.yaml"]; text != "" {
			return text
		}
	}
	return ""
}

// indexLabel is the label that Kubernetes gives pods of a StatefulSet.
const indexLabel = "metadata.labels['apps.kubernetes.io/pod-index']"

// Environment is what the container gets that is not secret, in the n-th pod of a StatefulSet.
func (o *Objects) Environment(n int) (variables []string) {
	for i := range o.StatefulSets {
		set := &o.StatefulSets[i].Spec
		if set.Ordinals != nil {
			n += int(set.Ordinals.Start)
		}
		for _, e := range set.Template.Spec.Containers[0].Env {
			if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == indexLabel {
				variables = append(variables, e.Name+"="+strconv.Itoa(n))
			}
		}
	}
	return variables
}
