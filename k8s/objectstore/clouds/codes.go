package clouds

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/aws/smithy-go"
	"google.golang.org/api/googleapi"

	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/objectstore/trust"
)

func unusable(action, reason string, args ...any) error {
	return objectstore.Unusable(action, fmt.Sprintf(reason, args...))
}

// asUnusable gives an error of package trust the words of this one.
func asUnusable(action string, err error) error {
	var unusable *trust.UnusableError
	if errors.As(err, &unusable) {
		return objectstore.Unusable(action, unusable.Reason)
	}
	return err
}

func failed(action string, err error) error { return objectstore.Failed(action, err, codeOf(err)) }

// plainCode matches an error code: a server could send anything in its place.
var plainCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,63}$`)

// codeOf returns the error code with which a cloud answered, if it is one.
func codeOf(err error) string {
	var code string
	var s3 smithy.APIError
	var azure *azcore.ResponseError
	var google *googleapi.Error
	switch {
	case errors.As(err, &s3):
		code = s3.ErrorCode()
	case errors.As(err, &azure):
		code = azure.ErrorCode
	case errors.As(err, &google):
		return fmt.Sprintf("HTTP status %d", google.Code)
	}
	if !plainCode.MatchString(code) {
		return ""
	}
	return code
}
