// Makes the search work on pages that are opened from a folder. Browsers start no worker there (file://), so this one
// runs the worker's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #inside = null;  // the frame's window, once its script is loaded

    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener("load", () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = frame.contentDocument.createElement("script");
        script.src = address;
        script.addEventListener("load", () => {
          this.#inside = inside;
          this.#waiting.forEach((data) => this.postMessage(data));
        });
        frame.contentDocument.body.append(script);
      }, { once: true });
      document.body.append(frame);
    }

    postMessage(data) {
      if (this.#inside) this.#inside.dispatchEvent(new MessageEvent("message", { data }));
      else this.#waiting.push(data);
    }
  };
}
