package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"holdfast.dev/holdfast/test/env"
)

// etcdStore writes objects where the API server keeps them, as it does: by its own hands a gigabyte would take many minutes. What
// is written is a copy of what the API server itself accepted and stored.
type etcdStore struct {
	url  string
	http *http.Client
}

func (r *rig) etcd(connections int) *etcdStore {
	return &etcdStore{
		url:  "http://" + r.stack.Component(env.Etcd).Address(env.AddressClient) + "/v3/kv/put",
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}},
	}
}

// put stores an object under the API server's key and returns its size in bytes.
func (s *etcdStore) put(ctx context.Context, key string, object any) (int, error) {
	value, err := json.Marshal(object)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value}) // as base64, which etcd's gateway reads
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, said)
	}
	if err != nil {
		return 0, fmt.Errorf("put %s into etcd: %w", key, err)
	}
	return len(value), nil
}
