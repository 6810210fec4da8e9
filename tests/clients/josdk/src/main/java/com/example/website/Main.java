package com.example.website;

import io.javaoperatorsdk.operator.Operator;

/** Runs the website operator. */
public class Main {
  public static void main(String[] arguments) {
    var operator = new Operator();
    operator.register(new WebsiteReconciler());
    operator.start();
  }
}
