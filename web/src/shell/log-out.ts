import { request } from '../api/request.ts'
import { expectEnd, leave } from '../api/session.ts'
import { tellFailure } from '../ui/notices.tsx'

/** Ends the session on the server; only then does the page forget it. */
export async function logOut(): Promise<void> {
  expectEnd(true)
  try {
    await request('POST /v1/console/logout', {})
    leave()
  } catch (error) {
    expectEnd(false)
    tellFailure(error)
  }
}
