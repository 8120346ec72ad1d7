package image

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/package-url/packageurl-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"holdfast.dev/holdfast/test/tools"
)

const (
	repository = "https://holdfast.dev/holdfast"
	unknown    = "NOASSERTION"
	// product is the name of the image in its documents.
	product = "holdfast"
)

// sbom lists the modules that the linker has put into the programs, that of the authorities, and the base image, as SPDX 2.3. The
// base is one entry: what it holds is for its own SBOM to say.
func (o Options) sbom(ctx context.Context, from base, binaries map[string]string, digest v1.Hash) ([]byte, error) {
	purls, _, err := linked(binaries)
	if err != nil {
		return nil, err
	}
	if from.scratch() {
		of, err := authoritiesModule(ctx, o.Source.Folder)
		if err != nil {
			return nil, err
		}
		purls = append(purls, of)
	} else {
		purls = append(purls, *imageURL(baseName(from.repository), from.repository, from.digest))
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: product + "@" + digest.String(), DocumentNamespace: repository + "/spdx/" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created:  o.Source.Time.Format("2006-01-02T15:04:05Z"),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "holdfast-image"}},
		},
		Packages: []*spdx.Package{{
			PackageName: product, PackageSPDXIdentifier: product, PackageVersion: o.version(), PackageDownloadLocation: unknown,
			PackageLicenseConcluded: unknown, PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: unknown,
			PrimaryPackagePurpose:     "CONTAINER",
			PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: digest.Hex}},
			PackageExternalReferences: references(*imageURL(product, "", digest)),
		}},
		Relationships: []*spdx.Relationship{{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", product), Relationship: "DESCRIBES",
		}},
	}
	for _, purl := range purls {
		id := identifier(purl)
		document.Packages = append(document.Packages, &spdx.Package{
			PackageName: strings.TrimPrefix(purl.Namespace+"/"+purl.Name, "/"), PackageSPDXIdentifier: id, PackageVersion: purl.Version,
			PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown,
			PackageCopyrightText: unknown, PackageExternalReferences: references(purl),
		})
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", product), RefB: common.MakeDocElementID("", string(id)), Relationship: "CONTAINS",
		})
	}
	var written bytes.Buffer
	if err := spdxjson.Write(document, &written, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return written.Bytes(), nil
}

func references(purl packageurl.PackageURL) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl.ToString(),
	}}
}

func imageURL(name, repository string, digest v1.Hash) *packageurl.PackageURL {
	qualifiers := map[string]string{}
	if repository != "" {
		qualifiers["repository_url"] = repository
	}
	return packageurl.NewPackageURL(packageurl.TypeOCI, "", name, digest.String(), packageurl.QualifiersFromMap(qualifiers), "")
}

// authoritiesModule is the module that this program has the authorities from, by the go.mod of the tests.
func authoritiesModule(ctx context.Context, folder string) (packageurl.PackageURL, error) {
	const path = "golang.org/x/crypto/x509roots/fallback"
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", path)
	command.Dir = filepath.Join(folder, "test")
	version, err := command.Output()
	if err != nil {
		return packageurl.PackageURL{}, fmt.Errorf("version of %s: %w", path, err)
	}
	return goURL(path, strings.TrimSpace(string(version))), nil
}

// linked are Go's standard library and the modules in the programs, each once, by name, and the version of Go.
func linked(binaries map[string]string) (purls []packageurl.PackageURL, toolchain string, err error) {
	modules := map[string]string{}
	for name, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, "", fmt.Errorf("read what %s is made of: %w", name, err)
		}
		toolchain = info.GoVersion
		modules["stdlib"] = strings.TrimPrefix(toolchain, "go")
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path] = module.Version
		}
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		purls = append(purls, goURL(path, modules[path]))
	}
	return purls, toolchain, nil
}

func goURL(module, version string) packageurl.PackageURL {
	namespace, name := "", module
	if at := strings.LastIndex(module, "/"); at >= 0 {
		namespace, name = module[:at], module[at+1:]
	}
	return *packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, version, nil, "")
}

// identifier is an SPDX identifier: letters, digits, dots and hyphens.
func identifier(purl packageurl.PackageURL) common.ElementID {
	return common.ElementID(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, purl.Type+"-"+purl.Namespace+"-"+purl.Name))
}

func baseName(reference string) string { return reference[strings.LastIndex(reference, "/")+1:] }

// provenance says from what and how an image was built, as SLSA 1.0 does (https://slsa.dev/spec/v1.0/provenance). It has no time
// of the build: two builds say the same.
func (o Options) provenance(from base, platform v1.Platform, binaries map[string]string) ([]byte, error) {
	type fields = map[string]any
	_, toolchain, err := linked(binaries)
	if err != nil {
		return nil, err
	}
	sources := []fields{{"uri": "git+" + repository, "digest": fields{"gitCommit": o.Source.Commit}}}
	if !from.scratch() {
		uri := "pkg:oci/" + baseName(from.repository) + "?repository_url=" + from.repository
		sources = append(sources, fields{"uri": uri, "digest": fields{from.digest.Algorithm: from.digest.Hex}})
	}
	return json.Marshal(fields{
		"buildDefinition": fields{
			"buildType": repository + "/image/v1",
			"externalParameters": fields{
				"name": o.Name, "platform": platform.String(), "version": o.version(), "base": from.given, "programs": programs,
				"environment": slices.Concat(tools.ShippedEnv, tools.ShippedDefaults),
				"flags":       append(slices.Clone(tools.ShippedFlags), "-ldflags="+linker(o.version())),
			},
			"internalParameters":   fields{"go": toolchain, "modified": o.Source.Modified},
			"resolvedDependencies": sources,
		},
		"runDetails": fields{"builder": fields{"id": repository + "/make-image"}},
	})
}
