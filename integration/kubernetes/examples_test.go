package kubernetes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"idproxy/config"
)

// folder is the example, seen from this package.
const folder = "../../examples/kubernetes"

// pods are what a StatefulSet and a Deployment have in common.
type pods struct {
	name     string
	selector *meta.LabelSelector
	template *core.PodTemplateSpec
	claims   []core.PersistentVolumeClaim
}

func (o *Objects) pods() (all []pods) {
	for i := range o.StatefulSets {
		s := &o.StatefulSets[i]
		all = append(all, pods{s.Name, s.Spec.Selector, &s.Spec.Template, s.Spec.VolumeClaimTemplates})
	}
	for i := range o.Deployments {
		d := &o.Deployments[i]
		all = append(all, pods{d.Name, d.Spec.Selector, &d.Spec.Template, nil})
	}
	return all
}

// idproxy is the container that is one: beside the application it is started first.
func (p pods) idproxy() core.Container {
	return slices.Concat(p.template.Spec.InitContainers, p.template.Spec.Containers)[0]
}

func (p pods) chosenBy(labels map[string]string) bool {
	for name, value := range labels {
		if p.template.Labels[name] != value {
			return false
		}
	}
	return len(labels) > 0
}

// faults finds what would keep the objects from working together.
func faults(o *Objects) []string {
	all := o.pods()
	if len(all) != 1 {
		return []string{fmt.Sprintf("%d kinds of pods", len(all))}
	}
	p := all[0]
	return slices.Concat(selectionFaults(o, p), serviceFaults(o, p), probeFaults(p), mountFaults(o, p), configFaults(o, p), closedFaults(p), jobFaults(o))
}

// selectionFaults: whatever chooses pods by labels must choose these, and a budget must leave some.
func selectionFaults(o *Objects, p pods) (faults []string) {
	if !p.chosenBy(p.selector.MatchLabels) {
		faults = append(faults, p.name+" does not choose its own pods")
	}
	for _, c := range p.template.Spec.TopologySpreadConstraints {
		if !p.chosenBy(c.LabelSelector.MatchLabels) {
			faults = append(faults, "pods are not spread")
		}
	}
	if len(o.Budgets) != 1 {
		return append(faults, "there is no budget for disruptions")
	}
	budget := o.Budgets[0].Spec
	if !p.chosenBy(budget.Selector.MatchLabels) || budget.MaxUnavailable == nil || *budget.MaxUnavailable != intstr.FromInt32(1) {
		faults = append(faults, "the budget does not keep all pods but one")
	}
	return faults
}

func serviceFaults(o *Objects, p pods) (faults []string) {
	headless := map[string]bool{}
	for _, s := range o.Services {
		headless[s.Name] = s.Spec.ClusterIP == core.ClusterIPNone
		if !p.chosenBy(s.Spec.Selector) {
			faults = append(faults, "service "+s.Name+" chooses no pod")
		}
		for _, port := range s.Spec.Ports {
			if number(p.idproxy(), port.TargetPort) != port.Port {
				faults = append(faults, fmt.Sprintf("service %s: port %d is not that of the container", s.Name, port.Port))
			}
		}
	}
	for _, s := range o.StatefulSets {
		if !headless[s.Spec.ServiceName] {
			faults = append(faults, "the service "+s.Spec.ServiceName+" of the set has an address, or is not there")
		}
	}
	return faults
}

// number is a container's port by its name, or 0.
func number(c core.Container, port intstr.IntOrString) int32 {
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}

// adminPort is where the admin listener of all examples is.
const adminPort = 9307

func probeFaults(p pods) (faults []string) {
	c := p.idproxy()
	for path, probe := range map[string]*core.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || number(c, probe.HTTPGet.Port) != adminPort {
			faults = append(faults, "nothing asks for "+path)
		}
	}
	if beside := len(p.template.Spec.InitContainers) > 0; beside {
		always := c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways
		if probe := c.StartupProbe; !always || probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/readyz" {
			faults = append(faults, "the application is started before there are ids")
		}
	}
	return faults
}

func mountFaults(o *Objects, p pods) (faults []string) {
	sources := map[string]bool{}
	for _, v := range p.template.Spec.Volumes {
		sources[v.Name] = slices.ContainsFunc(o.ConfigMaps, func(c core.ConfigMap) bool { return v.ConfigMap != nil && c.Name == v.ConfigMap.Name })
	}
	for _, c := range p.claims {
		sources[c.Name] = slices.Equal(c.Spec.AccessModes, []core.PersistentVolumeAccessMode{core.ReadWriteOncePod})
	}
	for _, m := range p.idproxy().VolumeMounts {
		if !sources[m.Name] {
			faults = append(faults, "nothing fit is mounted at "+m.MountPath)
		}
	}
	if !slices.Contains(p.idproxy().Args, "/etc/idproxy/idproxy.yaml") {
		faults = append(faults, "idproxy is not started with the file of the ConfigMap")
	}
	return faults
}

// configFaults checks idproxy.yaml against what the container has.
func configFaults(o *Objects, p pods) (faults []string) {
	env := map[string]string{"ADMIN_TOKEN": "0123456789abcdef", "WORKER": "3"}
	c, err := config.Parse("idproxy.yaml", []byte(o.Config()), func(name string) (string, bool) {
		there := slices.ContainsFunc(p.idproxy().Env, func(e core.EnvVar) bool { return e.Name == name && e.ValueFrom != nil })
		return env[name], there
	})
	if err != nil {
		return []string{err.Error()}
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for i := range c.Listeners {
		address := c.Listeners[i].Listen.String()
		inside := strings.HasPrefix(address, "127.0.0.1:") // for the other containers of the pod
		open := slices.ContainsFunc(p.idproxy().Ports, func(port core.ContainerPort) bool {
			return port.Name == c.Listeners[i].Name && strings.HasSuffix(address, fmt.Sprintf(":%d", port.ContainerPort))
		})
		if open == inside {
			fault("listener %s at %s: ports are %v", c.Listeners[i].Name, address, p.idproxy().Ports)
		}
	}
	if c.Admin == nil || c.Admin.Listen.String() != fmt.Sprintf(":%d", adminPort) {
		fault("the kubelet does not reach the admin listener")
	}
	for i := range c.Stores {
		if f := c.Stores[i].File; f != nil && !writable(p.idproxy(), f.Dir) {
			fault("store %s cannot write to %s", c.Stores[i].Name, f.Dir)
		}
	}
	grace := time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second
	if c.ShutdownTimeout >= grace {
		fault("the pod is killed after %v, before shutdown_timeout %v", grace, c.ShutdownTimeout)
	}
	// A pod that ends must be seen to be not ready before it closes sessions.
	probe := p.idproxy().ReadinessProbe
	seen := time.Duration(probe.PeriodSeconds*max(probe.FailureThreshold, 1)) * time.Second
	if len(o.Services) > 0 && c.Drain.Delay <= seen {
		fault("sessions are closed after %v, and the probe takes %v", c.Drain.Delay, seen)
	}
	return faults
}

// writable reports whether a folder is in a volume that the container may write to.
func writable(c core.Container, dir string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return !m.ReadOnly && strings.HasPrefix(dir, m.MountPath+"/") })
}

// jobFaults: a job has what its command needs, and no service, budget or set takes its pods for idproxy's.
func jobFaults(o *Objects) (faults []string) {
	for i := range o.Jobs {
		p := pods{o.Jobs[i].Name, nil, &o.Jobs[i].Spec.Template, nil}
		faults = slices.Concat(faults, mountFaults(o, p), closedFaults(p))
		for _, s := range o.Services {
			if p.chosenBy(s.Spec.Selector) {
				faults = append(faults, "service "+s.Name+" chooses the pods of job "+p.name)
			}
		}
		for _, name := range []string{"WORKER", "IDPROXY_PASSWORD", "ADMIN_TOKEN"} {
			if !slices.ContainsFunc(p.idproxy().Env, func(e core.EnvVar) bool { return e.Name == name }) {
				faults = append(faults, "job "+p.name+" has no "+name)
			}
		}
	}
	return faults
}

// closedFaults: idproxy needs no privilege.
func closedFaults(p pods) []string {
	s := p.idproxy().SecurityContext
	if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Contains(s.Capabilities.Drop, "ALL") || !*p.template.Spec.SecurityContext.RunAsNonRoot {
		return []string{"idproxy may do more than it needs"}
	}
	return nil
}

// rendered is the chart with files of values, each template changed first.
func rendered(t *testing.T, change func(string) string, values ...string) (*Objects, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(folder, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Templates {
		f.Data = []byte(change(string(f.Data)))
	}
	var paths []string
	for _, v := range values {
		paths = append(paths, filepath.Join(folder, v))
	}
	documents, err := Render(c, paths...)
	if err != nil {
		return nil, err
	}
	return Parse(documents)
}

func asItIs(text string) string { return text }

func TestChart(t *testing.T) {
	for _, values := range [][]string{nil, {"workers.yaml"}, {"pool.yaml"}} {
		o, err := rendered(t, asItIs, values...)
		if err != nil {
			t.Fatal(err)
		}
		if found := faults(o); found != nil {
			t.Errorf("%q: %q", values, found)
		}
		if len(o.StatefulSets) != 1 || len(o.Services) != 2 || len(o.ConfigMaps) != 1 {
			t.Errorf("%q: %d sets, %d services, %d files", values, len(o.StatefulSets), len(o.Services), len(o.ConfigMaps))
		}
	}
}

// TestChartOffenders shows the checks templates that are wrong.
func TestChartOffenders(t *testing.T) {
	for _, change := range [][2]string{
		{"maxUnavailable: 1", "maxUnavailable: 2"},
		{"path: /readyz", "path: /ready"},
		{"port: admin", "port: metrics"},
		{"targetPort: {{ .name }}", "targetPort: mysql"},
		{"clusterIP: None", "type: ClusterIP"},
		{"    matchLabels: {app.kubernetes.io/name: idproxy", "    matchLabels: {app.kubernetes.io/name: proxy"},
		{"  selector: {app.kubernetes.io/name: idproxy", "  selector: {app.kubernetes.io/name: proxy"},
		{"periodSeconds: 2", "periodSeconds: 5"},
		{"- {name: data, mountPath: /var/lib/idproxy}", "- {name: data, mountPath: /var/lib/proxy}"},
		{"- {name: data, mountPath: /var/lib/idproxy}", "- {name: data, mountPath: /var/lib/idproxy/data}"},
		{"ReadWriteOncePod", "ReadWriteMany"},
		{"- name: WORKER", "- name: NUMBER"},
		{"- {name: WORKER,", "- {name: NUMBER,"},
		{"      labels: {app.kubernetes.io/name: idproxy-series,", "      labels: {app.kubernetes.io/name: idproxy,"},
		{"configMap: {name: {{ .Release.Name }}}", "configMap: {name: proxy}"},
		{`listen: ":{{ .port }}"`, `listen: "127.0.0.1:{{ .port }}"`},
		{`admin: {listen: ":9307"`, `admin: {listen: "127.0.0.1:9307"`},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		{"{{ .Values.terminationGracePeriodSeconds }}", "30"},
		{"serviceName:", "servicename:"},
	} {
		changed := false
		o, err := rendered(t, func(text string) string {
			other := strings.ReplaceAll(text, change[0], change[1])
			changed = changed || other != text
			return other
		}, "workers.yaml")
		if !changed || err == nil && faults(o) == nil {
			t.Errorf("%q in place of %q is not found", change[1], change[0])
		}
	}
}

// TestValuesSchema: Helm refuses values that the schema does not have.
func TestValuesSchema(t *testing.T) {
	c, err := loader.Load(filepath.Join(folder, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{"replicas": "two", "shards": []any{}, "replica": 2, "terminationGracePeriodSeconds": 0} {
		old, there := c.Values[name]
		c.Values[name] = value
		if _, err := Render(c); err == nil {
			t.Errorf("%s: %v is taken", name, value)
		}
		c.Values[name] = old
		if !there {
			delete(c.Values, name)
		}
	}
	if _, err := Render(c); err != nil {
		t.Error(err)
	}
}

func TestSidecar(t *testing.T) {
	documents, err := Read(filepath.Join(folder, "sidecar.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(documents, "---\n")
	found := func(text string) []string {
		o, err := Parse(split(text))
		if err != nil {
			return []string{err.Error()}
		}
		return faults(o)
	}
	if f := found(text); f != nil {
		t.Errorf("%q", f)
	}
	for _, change := range [][2]string{
		{"          restartPolicy: Always", "          restartPolicy: Never"},
		{"startupProbe:", "startProbe:"},
		{"startupProbe:\n            httpGet: {path: /readyz", "startupProbe:\n            httpGet: {path: /healthz"},
		{`"127.0.0.1:3307"`, `":3307"`},
		{"shutdown_timeout: 10s", "shutdown_timeout: 40s"},
		{"{name: shop-idproxy}", "{name: idproxy}"},
		{"selector:\n    matchLabels: {app.kubernetes.io/name: shop}", "selector:\n    matchLabels: {app.kubernetes.io/name: store}"},
	} {
		if broken := strings.Replace(text, change[0], change[1], 1); broken == text || found(broken) == nil {
			t.Errorf("%q in place of %q is not found", change[1], change[0])
		}
	}
}

// TestEnvironment: the number of a pod goes on from the first one.
func TestEnvironment(t *testing.T) {
	o, err := rendered(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	o.StatefulSets[0].Spec.Ordinals = &apps.StatefulSetOrdinals{Start: 10}
	if got := o.Environment(2); !slices.Equal(got, []string{"WORKER=12"}) {
		t.Errorf("the third pod has %q", got)
	}
}
