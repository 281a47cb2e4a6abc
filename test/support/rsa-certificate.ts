import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate that signs itself, and its RSA key, as PEM. */
export function makeRsaCertificate(name: string): { readonly certificate: string; readonly key: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-certificate-'))
  try {
    const form = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${name}`]
    execFileSync('openssl', ['req', '-x509', ...form, '-keyout', 'key.pem', '-out', 'certificate.pem'], {
      cwd: directory,
      stdio: 'pipe',
    })
    const read = (file: string) => readFileSync(join(directory, file), 'utf8')
    return { certificate: read('certificate.pem'), key: read('key.pem') }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
