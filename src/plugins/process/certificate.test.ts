import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newCertificate } from './certificate.ts'

it('is a certificate that openssl accepts for both ends of a connection', () => {
  const { certificate, raw } = newCertificate(Date.now())
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'))
  const file = join(directory, 'own.pem')
  writeFileSync(file, certificate)
  try {
    for (const purpose of ['sslserver', 'sslclient']) {
      const args = ['verify', '-x509_strict', '-purpose', purpose, '-verify_hostname', 'localhost']
      expect(execFileSync('openssl', [...args, '-CAfile', file, file], { encoding: 'utf8' })).toContain('OK')
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
  const parsed = new X509Certificate(raw)
  expect(parsed.checkHost('localhost')).toBe('localhost')
  expect(parsed.verify(parsed.publicKey)).toBe(true)
  expect(newCertificate(Date.now()).certificate).not.toBe(certificate)
})
