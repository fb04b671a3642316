// The HTTP API under /api/v1: requests, errors with a reason, and the stream of a job.

const ROOT = '/api/v1';

/** An error response: `code`, `message` and the `field` of the request. */
export class ApiError extends Error {
  constructor({ code = 'failed', message, field = null }, { status = 0, retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { code, field, status, retryAfter });
  }
}

/** The server did not respond. */
export class ServerGone extends ApiError {
  constructor() {
    super({ code: 'unreachable', message: 'The server does not respond.' });
  }
}

export const get = (path, query = {}, options = {}) => {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  const text = new URLSearchParams(given).toString();
  return request('GET', text ? `${path}?${text}` : path, undefined, options);
};
export const post = (path, body, options = {}) => request('POST', path, body, options);
export const remove = (path, options = {}) => request('DELETE', path, undefined, options);

async function request(method, path, body, { signal } = {}) {
  let answer;
  try {
    answer = await fetch(ROOT + path, {
      method,
      signal,
      headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerGone();
  }
  const content = await answer.json().catch(() => null);
  if (answer.ok && content !== null) return content;
  const reason = content?.error ?? { message: `The server responded with status ${answer.status}.` };
  const wait = Number(answer.headers.get('Retry-After'));
  throw new ApiError(reason, { status: answer.status, retryAfter: wait > 0 ? wait : null });
}

/**
 * Listen to a job. The server starts with all past events, so a broken stream is simply opened
 * again.
 * @returns {() => void} stops listening.
 */
export function follow(id, { onPart, onEnd, onBroken, onLost }) {
  const stream = new EventSource(`${ROOT}/jobs/${encodeURIComponent(id)}/events`);
  stream.addEventListener('job', (event) => onPart(JSON.parse(event.data)));
  stream.addEventListener('end', () => {
    stream.close();
    onEnd();
  });
  stream.addEventListener('error', () => {
    if (stream.readyState === EventSource.CLOSED) onLost();
    else onBroken();
  });
  return () => stream.close();
}
