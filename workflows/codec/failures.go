package codec

import (
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
)

// sealedMessage is what the SDK writes in place of an encrypted message.
const sealedMessage = "Encoded failure"

// FailureConverter returns a converter that, with keys, encrypts messages and stack traces of errors too.
func FailureConverter(keys *Keys) converter.FailureConverter {
	data := DataConverter(keys)
	inner := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data, EncodeCommonAttributes: keys.dir != "",
	})
	if keys.dir == "" {
		return inner
	}
	return &failureConverter{inner: inner, data: data}
}

// failureConverter keeps in clear only what the caller asked for. The SDK's converter decrypts a failure in place, and an
// error made from a failure is sent as that same failure: the failed attempt of a local activity would be stored both
// encrypted and in clear, and so would the error of an activity that ends its workflow.
type failureConverter struct {
	inner converter.FailureConverter
	data  converter.DataConverter
}

// ErrorToFailure implements converter.FailureConverter.
func (c *failureConverter) ErrorToFailure(err error) *failurepb.Failure {
	failure := clone(c.inner.ErrorToFailure(err))
	for f := failure; f != nil; f = f.Cause {
		// One without has come from elsewhere: from a history in clear, or from the server.
		if f.EncodedAttributes == nil && converter.EncodeCommonFailureAttributes(c.data, f) == nil {
			continue
		}
		f.Message, f.StackTrace = sealedMessage, ""
	}
	return failure
}

// FailureToError implements converter.FailureConverter.
func (c *failureConverter) FailureToError(failure *failurepb.Failure) error {
	return c.inner.FailureToError(clone(failure))
}

func clone(failure *failurepb.Failure) *failurepb.Failure {
	if failure == nil {
		return nil
	}
	return proto.CloneOf(failure)
}
