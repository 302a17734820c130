package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

func counted(t *testing.T, counters *counters) (checks, allowed, denied uint64) {
	t.Helper()
	response := httptest.NewRecorder()
	counters.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/counters", nil))
	var shown map[string]uint64
	if err := json.Unmarshal(response.Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	return shown["checks"], shown["allowed"], shown["denied"]
}

func TestAuthorizationByEitherProtocolAsksForTheCredential(t *testing.T) {
	counters := &counters{}
	authorization := newAuthorization("secret", counters)
	for shown, allowed := range map[string]bool{"secret": true, "other": false, "": false} {
		headers := map[string]string{credentialHeader: shown}
		request := &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Headers: headers}}
		response, err := authorization.Check(context.Background(), &authv3.CheckRequest{
			Attributes: &authv3.AttributeContext{Request: request},
		})
		if err != nil || (response.Status.Code == 0) != allowed || (response.GetDeniedResponse() == nil) != allowed {
			t.Errorf("gRPC, %q: %v, %v", shown, response, err)
		}
		byHTTP, asked := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/get/1", nil)
		asked.Header.Set(credentialHeader, shown)
		authorization.ServeHTTP(byHTTP, asked)
		if (byHTTP.Code == http.StatusOK) != allowed || (byHTTP.Code == http.StatusForbidden) == allowed {
			t.Errorf("HTTP, %q: %d", shown, byHTTP.Code)
		}
	}
	if checks, allowed, denied := counted(t, counters); checks != 6 || allowed != 2 || denied != 4 {
		t.Error(checks, allowed, denied)
	}
	if _, err := authorization.server("smtp"); err == nil {
		t.Error("a protocol that it does not speak is an error")
	}
}

// decision is the status that the firewall answers with at once; 0 if it lets the request go on.
func decision(t *testing.T, firewall *firewall, path, body string) int {
	t.Helper()
	transaction := firewall.waf.NewTransaction()
	defer func() { _ = transaction.Close() }()
	header := func(name, value string) *corev3.HeaderValue {
		return &corev3.HeaderValue{Key: name, RawValue: []byte(value)}
	}
	headers := []*corev3.HeaderValue{
		header(":method", map[bool]string{true: "GET", false: "POST"}[body == ""]), header(":path", path),
		header(":authority", "d1.shop.example"), header(":scheme", "https"), header("user-agent", "meshmeter"),
	}
	if body != "" {
		headers = append(headers, header("content-type", "application/x-www-form-urlencoded"))
	}
	messages := []*extprocv3.ProcessingRequest{{Request: &extprocv3.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: headers}, EndOfStream: body == ""},
	}}}
	if body != "" {
		messages = append(messages, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
			RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true},
		}})
	}
	for _, message := range messages {
		response, err := firewall.inspect(transaction, message)
		if err != nil {
			t.Fatal(err)
		}
		if immediate := response.GetImmediateResponse(); immediate != nil {
			return int(immediate.Status.Code)
		}
	}
	return 0
}

func TestFirewallRefusesAttacksAndPassesOtherRequests(t *testing.T) {
	counters := &counters{}
	firewall, err := newFirewall(counters)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct {
		path, body string
		status     int
	}{
		{"/get/1", "", 0},
		{"/get/1?q=blue+shoes", "", 0},
		{"/get/1", "name=Ada&message=hello", 0},
		{"/get/1?q=%3Cscript%3Ealert(1)%3C/script%3E", "", 403},
		{"/get/1?id=1%27%20OR%20%271%27=%271", "", 403},
		{"/get/1", "message=%3Cscript%3Ealert(1)%3C/script%3E", 403},
	} {
		if status := decision(t, firewall, request.path, request.body); status != request.status {
			t.Errorf("%s %s: %d, not %d", request.path, request.body, status, request.status)
		}
	}
	if checks, allowed, denied := counted(t, counters); checks != 6 || allowed != 3 || denied != 3 {
		t.Error(checks, allowed, denied)
	}
	_, err = firewall.inspect(firewall.waf.NewTransaction(), &extprocv3.ProcessingRequest{})
	if err == nil {
		t.Error("a message that it did not ask for is an error")
	}
}

func TestWrongUseIsAnError(t *testing.T) {
	for _, arguments := range [][]string{
		{}, {"waf"}, {"waf", "--listen=127.0.0.1:0"}, {"nothing", "--listen=127.0.0.1:0", "--counters=127.0.0.1:0"},
		{"ext-authz", "--listen=127.0.0.1:0", "--counters=127.0.0.1:0"},
	} {
		if run(arguments) == nil {
			t.Errorf("%v: no error", arguments)
		}
	}
}
