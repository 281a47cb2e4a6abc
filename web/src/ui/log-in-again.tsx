import { useEffect, useState } from 'react'
import { onConfirmed, type Waiting } from '../api/confirm.ts'
import { Button, looksLike } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'

/** A person of single sign-on confirms an act by another login, in another tab. What they have entered stays here. */
export function LogInAgain({ waiting }: { readonly waiting: Waiting }) {
  const { provider, challenge, url, confirm, cancel } = waiting
  const [isOpened, setOpened] = useState(false)
  useEffect(() => onConfirmed(challenge, confirm), [challenge, confirm])
  return (
    <Dialog
      title={`Log in again at ${provider} to confirm`}
      description="It opens in a new tab. Once you have logged in there, this page goes on by itself; what you entered here stays. It must be done within five minutes."
      onClose={cancel}
    >
      <p role="status" className="text-muted">
        {isOpened && 'Waiting for the other tab. If you have closed it, open it again.'}
      </p>
      <Actions>
        <Button onClick={cancel}>Cancel</Button>
        <a
          href={url}
          target="_blank"
          rel="noopener"
          data-first
          onClick={() => setOpened(true)}
          className={looksLike(isOpened ? 'plain' : 'primary')}
        >
          {isOpened ? 'Open it again' : `Log in again at ${provider}`}
        </a>
      </Actions>
    </Dialog>
  )
}
