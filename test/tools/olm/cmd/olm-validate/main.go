// Command olm-validate checks a bundle for the Operator Lifecycle Manager with the validators of operator-framework/api, which
// catalogs use, too. It prints what they find, and fails if that is anything.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

// validators are those that do not concern one catalog alone, or an icon. That of removed APIs takes a right to Events for one
// of them.
var validators = validator.Validators{
	validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
	validation.ObjectValidator, validation.GoodPracticesValidator, validation.StandardCapabilitiesValidator,
	validation.StandardCategoriesValidator,
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: olm-validate FOLDER")
		os.Exit(2)
	}
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "olm-validate:", err)
		os.Exit(1)
	}
	found := 0
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, each := range append(result.Errors, result.Warnings...) {
			found++
			fmt.Printf("%s: %s\n", result.Name, each.Error())
		}
	}
	if found > 0 {
		os.Exit(1)
	}
	fmt.Printf("%s: %d objects are valid\n", bundle.Name, len(bundle.Objects))
}
