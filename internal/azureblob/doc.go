// Package azureblob knows how containers and blobs of Azure are kept: under which paths, with
// which properties, and what names them.
//
// The Azure door serves them to Azure's clients, and the Terraform door writes those that are
// states of the azurerm backend; neither imports the other.
package azureblob
