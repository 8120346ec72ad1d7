// Package operator is what the commands of people share: their flags, the clients that they open with their own rights, how a
// kind of objects is listed and described, columns and sheets.
//
// starter and its packages call it; each makes a value of Shown. It knows no kind. It imports, of ours, k8s, k8s/process,
// workflows/codec, workflows/connect and workflows/contract.
package operator
