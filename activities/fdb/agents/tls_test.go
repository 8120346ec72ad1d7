package agents_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/activities/fdb/agents"
)

// tlsTemplate has these variables, mounts and volumes, each the content of a JSON list.
func tlsTemplate(env, mounts, volumes string) string {
	return `{"spec":{"volumes":[` + volumes + `],"containers":[{"name":"foundationdb","env":[` + env + `],"volumeMounts":[` + mounts + `]}]}}`
}

const (
	certificate = `{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls/tls.crt"}`
	secret      = `{"name":"tls","secret":{"secretName":"fdb-tls"}}`
	mount       = `{"name":"tls","mountPath":"/tls"}`
)

func TestTLSFilesAreFound(t *testing.T) {
	crt := agents.TLS{Certificate: &agents.Source{Secret: "fdb-tls", Key: "tls.crt"}}
	tests := map[string]struct {
		template string
		want     agents.TLS
	}{
		"no template": {"", agents.TLS{}},
		"no TLS":      {tlsTemplate("", "", ""), agents.TLS{}},
		"all there is": {
			tlsTemplate(certificate+`,{"name":"FDB_TLS_KEY_FILE","value":"/tls/tls.key"},{"name":"FDB_TLS_CA_FILE","value":"/ca/bundle/ca.pem"},`+
				`{"name":"FDB_TLS_VERIFY_PEERS","value":"S.CN=x"},`+
				`{"name":"FDB_TLS_PASSWORD","valueFrom":{"secretKeyRef":{"name":"pass","key":"word"}}}`,
				mount+`,{"name":"ca","mountPath":"/ca"}`,
				secret+`,{"name":"ca","configMap":{"name":"roots","items":[{"key":"other","path":"other"},{"key":"root.crt","path":"bundle/ca.pem"}]}}`),
			agents.TLS{
				Certificate: crt.Certificate, Key: &agents.Source{Secret: "fdb-tls", Key: "tls.key"},
				CA:       &agents.Source{ConfigMap: "roots", Key: "root.crt"},
				Password: &agents.Source{Secret: "pass", Key: "word"}, VerifyPeers: "S.CN=x",
			},
		},
		"empty variables": {
			tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":""},{"name":"FDB_TLS_PASSWORD"}`, "", ""), agents.TLS{},
		},
		"one file by subPath": {
			tlsTemplate(certificate, `{"name":"tls","mountPath":"/tls/tls.crt","subPath":"cert"}`, secret),
			agents.TLS{Certificate: &agents.Source{Secret: "fdb-tls", Key: "cert"}},
		},
		"a folder by subPath": {
			tlsTemplate(certificate, `{"name":"tls","mountPath":"/tls","subPath":"in"}`,
				`{"name":"tls","secret":{"secretName":"fdb-tls","items":[{"key":"tls.crt","path":"in/tls.crt"}]}}`),
			crt,
		},
		"the innermost of several mounts": {
			tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls/in/tls.crt"}`,
				`{"name":"other","mountPath":"/tls"},{"name":"tls","mountPath":"/tls/in/"},{"name":"other","mountPath":"/"}`,
				secret+`,{"name":"other","secret":{"secretName":"other"}}`),
			crt,
		},
		"a folder whose name only begins alike": {
			tlsTemplate(certificate, `{"name":"other","mountPath":"/tl"},`+mount, secret+`,{"name":"other","emptyDir":{}}`), crt,
		},
		"a mount at the root": {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls.crt"}`, `{"name":"tls","mountPath":"/"}`, secret), crt},
		"a path with detours": {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/x/..//tls/./tls.crt"}`, mount, secret), crt},
		"a projected volume": {
			tlsTemplate(certificate+`,{"name":"FDB_TLS_CA_FILE","value":"/tls/ca.crt"}`, mount,
				`{"name":"tls","projected":{"sources":[{"serviceAccountToken":{"path":"token"}},`+
					`{"secret":{"name":"fdb-tls","items":[{"key":"tls.crt","path":"tls.crt"}]}},`+
					`{"configMap":{"name":"roots","items":[{"key":"ca","path":"ca.crt"}]}}]}}`),
			agents.TLS{Certificate: crt.Certificate, CA: &agents.Source{ConfigMap: "roots", Key: "ca"}},
		},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			got, err := agents.TLSFiles(backup(tt.template))
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestTLSFilesThatCannotBeFound(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"a bad template": {`{"x":1}`, `unknown field "x"`},
		"no mount":       {tlsTemplate(certificate, "", ""), `sets FDB_TLS_CERTIFICATE_FILE to "/tls/tls.crt", which no volume mount of container foundationdb holds`},
		"no volume":      {tlsTemplate(certificate, mount, ""), "mounts volume tls in container foundationdb, but has no such volume"},
		"a volume of another kind": {
			tlsTemplate(certificate, mount, `{"name":"tls","emptyDir":{}}`), "in volume tls, which is no Secret and no ConfigMap",
		},
		"no such item": {
			tlsTemplate(certificate, mount, `{"name":"tls","secret":{"secretName":"a","items":[{"key":"tls.crt","path":"other"}]}}`),
			"but volume tls has no such file",
		},
		"a folder that is none":  {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls/a/b"}`, mount, secret), "but volume tls has no such file"},
		"the folder itself":      {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"/tls"}`, mount, secret), "but volume tls has no such file"},
		"a relative path":        {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"tls/tls.crt"}`, mount, secret), "which no volume mount"},
		"a path made of another": {tlsTemplate(`{"name":"FDB_TLS_CERTIFICATE_FILE","value":"$(DIR)/tls.crt"}`, mount, secret), "must give FDB_TLS_CERTIFICATE_FILE in container foundationdb as a plain value"},
		"a path from elsewhere":  {tlsTemplate(`{"name":"FDB_TLS_KEY_FILE","valueFrom":{"secretKeyRef":{"name":"a","key":"b"}}}`, mount, secret), "must give FDB_TLS_KEY_FILE"},
		"peers from elsewhere":   {tlsTemplate(`{"name":"FDB_TLS_VERIFY_PEERS","valueFrom":{"secretKeyRef":{"name":"a","key":"b"}}}`, "", ""), "must give FDB_TLS_VERIFY_PEERS"},
		"subPathExpr":            {tlsTemplate(certificate, `{"name":"tls","mountPath":"/tls","subPathExpr":"$(X)"}`, secret), "mounts volume tls with subPathExpr"},
		"a password in the open": {tlsTemplate(`{"name":"FDB_TLS_PASSWORD","value":"hunter2"}`, "", ""), "must set FDB_TLS_PASSWORD in container foundationdb from a Secret"},
		"a password in a ConfigMap": {
			tlsTemplate(`{"name":"FDB_TLS_PASSWORD","valueFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}`, "", ""), "must set FDB_TLS_PASSWORD",
		},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			got, err := agents.TLSFiles(backup(tt.template))
			var invalid *agents.TemplateError
			require.ErrorAs(t, err, &invalid)
			assert.Contains(t, err.Error(), tt.want)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.Equal(t, agents.TLS{}, got)
		})
	}
}
