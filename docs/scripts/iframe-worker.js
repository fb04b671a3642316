// Browsers give no workers to pages opened from the file system, and search runs in one. There, and
// only there, run the worker's script in a hidden frame that passes messages as a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      // messages sent before the script is there wait for it
      this.inside = new Promise((ready) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = () => ready(inside);
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.inside.then((inside) =>
        inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
