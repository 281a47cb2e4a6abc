import type { Step } from './change.ts'
import type { Engine } from './engine.ts'
import { run } from './run.ts'
import type { IdempotencyRow, IssuerKeyRow } from './schema.ts'

/** What the token endpoint and repeated requests need: issuer keys, revoked tokens, used proofs, idempotency. */
export function createTokens(engine: Engine) {
  return { ...issuerKeys(engine), ...idempotency(engine), ...tidying(engine) }
}

function issuerKeys({ build, read }: Engine) {
  return {
    /** Those that sign or still verify at `now`, newest first. */
    issuerKeys: (now: number): Promise<IssuerKeyRow[]> =>
      read<IssuerKeyRow>(
        build
          .selectFrom('issuer_keys')
          .selectAll()
          .where((e) => e.or([e('retires_at', 'is', null), e('retires_at', '>', now)]))
          .orderBy('created_at', 'desc')
          .orderBy('kid', 'desc'),
      ),
    /** At once, or verifying until `until` with its private key gone. */
    retireIssuerKeys: (until: number | undefined): Step =>
      until === undefined
        ? run(build.deleteFrom('issuer_keys'), 'any')
        : run(
            build
              .updateTable('issuer_keys')
              .set({ retires_at: until, private_key: null })
              .where('retires_at', 'is', null),
            'any',
          ),
    isRevoked: async (jti: string): Promise<boolean> =>
      (await read<{ jti: string }>(build.selectFrom('revoked_tokens').select('jti').where('jti', '=', jti)))
        .length > 0,
    revokedAfter: (now: number): Promise<{ jti: string; expires_at: number }[]> =>
      read(build.selectFrom('revoked_tokens').selectAll().where('expires_at', '>', now)),
  }
}

function idempotency({ build, read }: Engine) {
  return {
    findIdempotent: async (
      agentId: string,
      keyHash: string,
      now: number,
    ): Promise<IdempotencyRow | undefined> =>
      (
        await read<IdempotencyRow>(
          build
            .selectFrom('idempotency')
            .selectAll()
            .where('agent_id', '=', agentId)
            .where('key_hash', '=', keyHash)
            .where('expires_at', '>', now),
        )
      )[0],
    keepReply: (agentId: string, keyHash: string, reply: string, eraseAt: number): Step =>
      run(
        build
          .updateTable('idempotency')
          .set({ reply, erase_at: eraseAt })
          .where('agent_id', '=', agentId)
          .where('key_hash', '=', keyHash),
        1,
      ),
    /** The claims that led to this credential. */
    forgetIdempotentOf: (agentId: string, credentialId: string): Step =>
      run(
        build
          .deleteFrom('idempotency')
          .where('agent_id', '=', agentId)
          .where('credential_id', '=', credentialId),
        'any',
      ),
    forgetIdempotent: (agentId: string, keyHash: string): Step =>
      run(
        build.deleteFrom('idempotency').where('agent_id', '=', agentId).where('key_hash', '=', keyHash),
        'any',
      ),
  }
}

function tidying({ build }: Engine) {
  return {
    /** Whatever has run out: sealed replies, remembered keys, used proofs, revoked and retired. */
    tidy: (now: number): Step[] => [
      run(
        build
          .updateTable('idempotency')
          .set({ reply: null })
          .where('erase_at', '<=', now)
          .where('reply', 'is not', null),
        'any',
      ),
      run(build.deleteFrom('idempotency').where('expires_at', '<=', now), 'any'),
      run(build.deleteFrom('used_proofs').where('expires_at', '<=', now), 'any'),
      run(build.deleteFrom('revoked_tokens').where('expires_at', '<=', now), 'any'),
      run(build.deleteFrom('issuer_keys').where('retires_at', '<=', now), 'any'),
    ],
  }
}
