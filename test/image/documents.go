package image

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/package-url/packageurl-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const (
	repository = "https://holdfast.dev/holdfast"
	unknown    = "NOASSERTION"
	// product is the SPDX identifier of the image itself.
	product = common.ElementID("holdfast")
)

// sbom lists the modules that the linker has put into the programs, and the base image, as SPDX 2.3.
func (o Options) sbom(from base, binaries map[string]string, digest v1.Hash) ([]byte, error) {
	purls, err := linked(binaries)
	if err != nil {
		return nil, err
	}
	if from.reference != "" {
		purls = append(purls, *packageurl.NewPackageURL(packageurl.TypeOCI, "", baseName(from.reference), from.digest,
			packageurl.QualifiersFromMap(map[string]string{"repository_url": from.reference}), ""))
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "holdfast@" + digest.String(), DocumentNamespace: repository + "/spdx/" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created:  o.Source.Time.Format("2006-01-02T15:04:05Z"),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "holdfast-image"}},
		},
		Packages: []*spdx.Package{{
			PackageName: "holdfast", PackageSPDXIdentifier: product, PackageVersion: o.version(), PackageDownloadLocation: unknown,
			PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: unknown,
		}},
		Relationships: []*spdx.Relationship{{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", string(product)), Relationship: "DESCRIBES",
		}},
	}
	for _, purl := range purls {
		id := identifier(purl)
		document.Packages = append(document.Packages, &spdx.Package{
			PackageName: strings.TrimPrefix(purl.Namespace+"/"+purl.Name, "/"), PackageSPDXIdentifier: id, PackageVersion: purl.Version,
			PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown,
			PackageCopyrightText: unknown,
			PackageExternalReferences: []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl.ToString(),
			}},
		})
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(product)), RefB: common.MakeDocElementID("", string(id)), Relationship: "CONTAINS",
		})
	}
	var written bytes.Buffer
	if err := spdxjson.Write(document, &written, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return written.Bytes(), nil
}

// linked are Go's standard library and the modules in the programs, each once, by name.
func linked(binaries map[string]string) ([]packageurl.PackageURL, error) {
	modules := map[string]string{}
	for name, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read what %s is made of: %w", name, err)
		}
		modules["stdlib"] = strings.TrimPrefix(info.GoVersion, "go")
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[module.Path] = module.Version
		}
	}
	var purls []packageurl.PackageURL
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		namespace, name := "", path
		if at := strings.LastIndex(path, "/"); at >= 0 {
			namespace, name = path[:at], path[at+1:]
		}
		purls = append(purls, *packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, modules[path], nil, ""))
	}
	return purls, nil
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
func (o Options) provenance(from base, platform v1.Platform) ([]byte, error) {
	type fields = map[string]any
	sources := []fields{{"uri": "git+" + repository, "digest": fields{"gitCommit": o.Source.Commit}}}
	if from.reference != "" {
		algorithm, hex, _ := strings.Cut(from.digest, ":")
		uri := "pkg:oci/" + baseName(from.reference) + "?repository_url=" + from.reference
		sources = append(sources, fields{"uri": uri, "digest": fields{algorithm: hex}})
	}
	encoded, err := json.MarshalIndent(fields{
		"buildDefinition": fields{
			"buildType": repository + "/image/v1",
			"externalParameters": fields{
				"platform": platform.String(), "version": o.version(), "programs": programs,
				"environment": environment, "flags": buildFlags,
			},
			"internalParameters":   fields{"go": runtime.Version(), "modified": o.Source.Modified},
			"resolvedDependencies": sources,
		},
		"runDetails": fields{"builder": fields{"id": repository + "/make-image"}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return append(encoded, '\n'), nil
}
