#!/usr/bin/env node
// Terraform runs this as `terraform-credentials-mayfly`.
process.argv.splice(2, 0, 'terraform-credentials')
await import('./main.ts')

export {}
