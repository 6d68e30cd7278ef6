package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"idproxy/integration/assert"
	"idproxy/integration/process"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// apiServer is a kube-apiserver that runs.
type apiServer struct {
	url    string
	client http.Client
}

// startAPIServer builds a kube-apiserver and starts it with an etcd, whose certificates it shares.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kube-apiserver")
	build := exec.Command("go", "build", "-C", "apiserver", "-ldflags=-w", "-o", program, "k8s.io/kubernetes/cmd/kube-apiserver")
	text, err := build.CombinedOutput()
	assert.Must(t, err, string(text))

	t.Setenv("PATH", os.Getenv("PATH")+":"+assert.Of(filepath.Abs("../../.tools/etcd")).Must(t))
	etcd := assert.Of(servers.StartEtcdTLS(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, etcd.Stop()) })
	address := assert.Of(servers.FreeAddr()).Must(t)
	_, port, err := net.SplitHostPort(address)
	assert.Must(t, err)
	in := func(name string) string { return filepath.Join(etcd.Dir, name) }
	p := assert.Of(process.Start(process.Spec{Path: program, Log: in("apiserver.log"), Args: []string{
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--etcd-servers=https://" + etcd.Addr, "--etcd-cafile=" + in("ca.pem"), "--etcd-certfile=" + in("client.pem"), "--etcd-keyfile=" + in("client.key"),
		"--tls-cert-file=" + in("server.pem"), "--tls-private-key-file=" + in("server.key"), "--client-ca-file=" + in("ca.pem"),
		"--authorization-mode=AlwaysAllow", "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://" + address,
		"--service-account-key-file=" + in("server.pem"), "--service-account-signing-key-file=" + in("server.key"),
	}})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	s := &apiServer{"https://" + address, http.Client{Transport: &http.Transport{TLSClientConfig: etcd.TLS}}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	assert.Must(t, p.Poll(ctx, func() bool { _, err := s.do(http.MethodGet, "/readyz", ""); return err == nil }))
	return s
}

// do returns what the server answers. It is an error that the server refuses, or that it warns.
func (s *apiServer) do(method, path, body string) (answer any, err error) {
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/yaml")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if warnings := response.Header["Warning"]; err == nil && (response.StatusCode >= 300 || warnings != nil) {
		err = fmt.Errorf("%s %s: %s, warnings %q: %.500s", method, path, response.Status, warnings, text)
	}
	if err == nil {
		err = yaml.Unmarshal(text, &answer)
	}
	return answer, err
}

// createAll sends objects to a namespace of their own, which takes no pods that Pod Security does not
// call restricted. It returns the fields that are not there, or are others, when they are read back.
func (s *apiServer) createAll(namespace, validation string, documents []string) (differing []string, err error) {
	_, err = s.do(http.MethodPost, "/api/v1/namespaces",
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+", labels: {pod-security.kubernetes.io/enforce: restricted}}}")
	account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}" // which a controller makes
	for _, document := range slices.Insert(slices.Clone(documents), 0, account) {
		fields, failed := s.create(namespace, validation, document)
		differing, err = append(differing, fields...), errors.Join(err, failed)
	}
	return differing, err
}

func (s *apiServer) create(namespace, validation, document string) (differing []string, err error) {
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	var sent any
	if err := errors.Join(yaml.Unmarshal([]byte(document), &object), yaml.Unmarshal([]byte(document), &sent)); err != nil {
		return nil, err
	}
	path := "/apis/" + object.APIVersion
	if object.APIVersion == "v1" {
		path = "/api/v1"
	}
	path += "/namespaces/" + namespace + "/" + strings.ToLower(object.Kind) + "s"
	if _, err := s.do(http.MethodPost, path+"?fieldValidation="+validation, document); err != nil {
		return nil, err
	}
	kept, err := s.do(http.MethodGet, path+"/"+object.Metadata.Name, "")
	return differences(object.Kind, sent, kept), err
}

// differences are the fields that were sent and are not kept like that. What is kept may have more.
func differences(at string, sent, kept any) (fields []string) {
	switch sent := sent.(type) {
	case map[string]any:
		object, _ := kept.(map[string]any)
		for name, value := range sent {
			fields = append(fields, differences(at+"."+name, value, object[name])...)
		}
	case []any:
		list, _ := kept.([]any)
		if len(list) != len(sent) {
			return []string{at}
		}
		for i, value := range sent {
			fields = append(fields, differences(fmt.Sprintf("%s[%d]", at, i), value, list[i])...)
		}
	default:
		if sent != kept {
			return []string{at}
		}
	}
	return fields
}

// withPods adds the first pod of each kind, as a controller makes it.
func withPods(t *testing.T, documents []string) []string {
	t.Helper()
	for _, p := range assert.Of(Parse(documents)).Must(t).pods() {
		pod := core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: p.template.ObjectMeta, Spec: p.template.Spec}
		pod.Name = p.name + "-0"
		for _, c := range p.claims {
			source := core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: c.Name + "-" + pod.Name}}
			pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: c.Name, VolumeSource: source})
		}
		documents = append(documents, string(assert.Of(yaml.Marshal(pod)).Must(t)))
	}
	return documents
}

// TestAPIServer: a kube-apiserver takes each object, and the pods that are made of them, and keeps
// each field. It refuses what is wrong.
func TestAPIServer(t *testing.T) {
	width.InLong(t, "kube-apiserver takes minutes to build")
	s := startAPIServer(t)
	var documents []string
	for i, files := range [][]string{{"sidecar.yaml"}, {"chart"}, {"chart", "pool.yaml"}, {"chart", "workers.yaml"}} {
		for i := range files {
			files[i] = filepath.Join(folder, files[i])
		}
		documents = withPods(t, assert.Of(Read(files[0], files[1:]...)).Must(t))
		differing, err := s.createAll(fmt.Sprintf("example-%d", i), "Strict", documents)
		assert.NoError(t, err, files)
		assert.True(t, differing == nil, "%q: the server does not keep %q", files, differing)
		t.Logf("compared: %d objects", len(documents))
	}
	changed := func(from, to string) (all []string) {
		for _, d := range documents {
			all = append(all, strings.ReplaceAll(d, from, to))
		}
		return all
	}
	for i, change := range [][3]string{
		{"podManagementPolicy:", "podManagementpolicy:", `unknown field \"spec.podManagementpolicy\"`},
		{"maxUnavailable: 1", "maxUnavailable: -1", "must be greater than or equal to 0"},
		{"runAsNonRoot: true", "runAsNonRoot: false", "violates PodSecurity"},
	} {
		_, err := s.createAll(fmt.Sprintf("offender-%d", i), "Strict", changed(change[0], change[1]))
		assert.Fails(t, change[1], err, change[2])
	}
	differing, err := s.createAll("lenient", "Ignore", changed("podManagementPolicy:", "podManagementpolicy:"))
	assert.NoError(t, err)
	assert.Equal(t, "fields that a lenient server drops", fmt.Sprint(differing), "[StatefulSet.spec.podManagementpolicy]")
}
